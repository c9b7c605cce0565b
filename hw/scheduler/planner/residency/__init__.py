"""Residency: the tensors that stay in the scratchpad between their uses."""
