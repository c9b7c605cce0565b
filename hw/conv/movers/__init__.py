"""The data movers of convolution: from jobs to the core's streams, and its results to memory."""
