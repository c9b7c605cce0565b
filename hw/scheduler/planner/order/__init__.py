"""In which order operators run: decomposition, proofs, search."""
