"""The attention kernel: what the shell of `hw.lib.kernel` wraps."""
