"""Core of the map: streams in, streams out; it knows nothing of memory ports."""
