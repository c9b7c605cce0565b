"""Cycle prediction of programs: a cycle-by-cycle model of the hardware, without data."""
