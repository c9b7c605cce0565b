"""The convolution engine beside other schedules."""
