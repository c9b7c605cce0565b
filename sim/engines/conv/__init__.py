"""The convolution engine in simulation: golden runs of launches, and the comparison of their results."""
