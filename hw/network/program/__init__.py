"""A program: a compiled network as steps of the kernel, and its image in memory."""
