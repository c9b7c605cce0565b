"""Other schedules of the same convolutions as formulas: cycles and bytes, and what they assume.

They stand on the constants of the board's memory that the engine's own model uses: beats and longest bursts
of a port, latency of an idle channel, realistic bandwidth.  What is not said favours them: rows of banks are
open, refreshes do not happen, ports never disturb each other.
"""
