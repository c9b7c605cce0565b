"""Small things that run; each is a test."""
