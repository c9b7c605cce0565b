"""The simulation side of the network engine."""
