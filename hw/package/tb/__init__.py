"""A testbench for packages, in simulators that know X."""
