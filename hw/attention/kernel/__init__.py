"""The attention kernel: the body for the shell of `hw.lib.kernel`."""
