"""Rings of commands and responses in host memory."""
