"""Matrix products and convolutions of int8: weights at rest, pixels in a stream, sums in a memory."""
