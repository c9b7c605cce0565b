"""The kernel of the oblivious map: what the shell of `hw.lib.kernel` wraps."""
