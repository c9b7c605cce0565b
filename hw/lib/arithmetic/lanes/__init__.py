"""Multipliers of many lanes as models of what they compute, for simulation (`hw.lib.convert.Models`).

A multiplier's gates have registers that nothing but the multiplier reads, and Verilator moves each of them,
lane by
lane, in every cycle.  A model is a loop over lanes in C++, called once a cycle.  Tests hold it to the gates.
"""
