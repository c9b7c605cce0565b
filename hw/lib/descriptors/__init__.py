"""Descriptors: records of fixed size in memory, one for each job of a launch."""
