"""One launch of one engine, from tensors to a verdict."""
