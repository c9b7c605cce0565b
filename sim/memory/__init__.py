"""Memory models: C++ behind DPI-C in co-simulation, and behind ctypes in unit tests."""
