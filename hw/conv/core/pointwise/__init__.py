"""The pointwise array: weights at rest while a block of pixels passes."""
