"""Search for the number of bands of each operator."""
