"""Descriptors: fixed records in memory that say what a launch is to do, one after another."""
