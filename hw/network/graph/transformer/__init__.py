"""Transformers: ONNX graphs of tokens to blocks, their quantization, and back to ONNX."""
