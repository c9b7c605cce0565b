"""The host side: from a plan and source tensors to a launch, and from memory back to tensors."""
