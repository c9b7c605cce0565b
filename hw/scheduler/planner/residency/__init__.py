"""Which tensors stay in the scratchpad between their uses."""
