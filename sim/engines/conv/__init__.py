"""The convolution engine in simulation: what a launch is made of and what its results are held against."""
