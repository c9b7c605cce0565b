"""Blocks of one size in host memory: pages, commands, responses."""
