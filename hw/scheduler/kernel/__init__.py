"""The scheduler kernel: what the shell of `hw.lib.kernel` wraps."""
