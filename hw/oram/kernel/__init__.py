"""The kernel of the oblivious map, for the shell of `hw.lib.kernel`."""
