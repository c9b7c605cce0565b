"""Prediction of a launch's cycles and bytes without a simulation."""
