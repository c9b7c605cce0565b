"""The convolution kernel: the body that the shell of `hw.lib.kernel` wraps."""
