"""The scheduler kernel: arguments, counters and body for the shell of `hw.lib.kernel`."""
