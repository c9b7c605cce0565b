"""Testbenches: the module around a kernel in the simulator, and the cocotb module that drives it."""
