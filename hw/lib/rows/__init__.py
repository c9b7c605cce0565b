"""Rows of whole units, contiguous in memory: cut out of words, and packed into words."""
