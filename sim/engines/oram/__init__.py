"""The oblivious map in simulation."""
