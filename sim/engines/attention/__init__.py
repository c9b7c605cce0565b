"""The attention engine: tensors, launches, golden results, figures."""
