"""Calibration of the memory models: published measurements, and the same experiments on the models."""
