"""Golden model of convolution, from ONNX's Conv and DeformConv and ``docs/conv-specification.md``."""
