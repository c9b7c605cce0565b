"""What the oblivious map needs and what it takes, without a simulation."""
