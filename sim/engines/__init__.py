"""One module an engine: how its tensors become a launch, and what its launch should have given."""
