"""Multipliers of many lanes as models of their function, for simulation (`hw.lib.convert.Models`).

A multiplier has registers that nothing else reads, and Verilator moves each of them in every cycle.  A model
is a loop over lanes in C++, called once a cycle.  A test holds each model to the cells.
"""
