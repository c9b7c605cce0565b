"""The check of a program's order: every execution that its waits allow ends with the same bytes."""
