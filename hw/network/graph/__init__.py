"""Quantized networks as integers, read from ONNX."""
