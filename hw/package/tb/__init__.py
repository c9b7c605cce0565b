"""A testbench for packages, in four-state simulators."""
