"""What the host's script of the oblivious map is rendered from."""
