"""Passes, bytes and cycles of a launch, computed without tensors."""
