"""The check of a program's order: every execution that its waits allow gives the same bytes, and ends."""
