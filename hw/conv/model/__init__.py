"""The cycles and bytes of a launch, predicted without tensors."""
