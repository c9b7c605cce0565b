"""Convolutions drawn at random, and onnxruntime as their oracle."""
