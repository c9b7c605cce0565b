"""Golden model of the convolution engine, from ONNX's Conv and DeformConv and ``docs/conv-specification.md``."""
