"""The convolution kernel: what the shell of `hw.lib.kernel` wraps."""
