"""Golden model of the convolution engine, from ONNX's Conv and DeformConv and from ``docs/conv.md``."""
