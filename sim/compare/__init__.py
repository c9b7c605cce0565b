"""Comparisons: rows that take long to make, each kept at once; their tables, files and pages."""
