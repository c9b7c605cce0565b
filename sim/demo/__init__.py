"""``loomwork demo``: every engine's real input through its generated RTL."""
