"""Which bytes move between memory and scratchpad, and when."""
