"""The matrix unit: convolutions and products."""
