"""The host side: from layers and tensors to jobs, their descriptors and the bytes in memory, and back."""
