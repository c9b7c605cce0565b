"""One launch of one engine, from tensors to a comparison with the golden model."""
