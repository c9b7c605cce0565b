"""Tables of 256 bytes: their store, and the copy of one of them in lanes of both units."""
