"""Templates of the oblivious map's host script."""
