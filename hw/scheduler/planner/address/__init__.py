"""Scratchpad addresses of tensors."""
