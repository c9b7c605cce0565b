"""Rows of whole units that lie behind each other in memory: cut out of words, and packed into words."""
