"""The scheduler engine: sources, launches, golden results."""
