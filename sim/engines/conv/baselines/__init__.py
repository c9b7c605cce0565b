"""Other schedules of the same convolutions as formulas: cycles and bytes, with their assumptions.

They use the constants of the board's memory that the engine's own model uses.  These are beats and longest
bursts of a port, latency of an idle channel, and realistic bandwidth.  Anything not modelled favours them:
rows of banks are open, refreshes do not happen, ports never disturb each other.
"""
