"""Quantized networks: operators on integers with their weights, read from ONNX.

A `network.Network` holds numbers, and says nothing about hardware::

    ONNX, QDQ or QOperator -> onnx_reader -> Network -> compile -> plan, program image, weights
                                                |
                                                +----> golden model, onnxruntime

`integers` has the integer rule of each operator's scales.
"""
