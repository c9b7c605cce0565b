"""What a launch takes: cycles and bytes, without tensors."""
