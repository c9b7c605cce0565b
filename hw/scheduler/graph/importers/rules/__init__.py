"""Rules of shapes, an operator each: from the operands' shapes and values to the results' shapes.

Each follows the specification's text, or, where that leaves something open, onnxruntime.  A rule refuses
operands that do not fit by `Misfit`, and gives up with `Unknown` where the result's shape depends on values
that are known only when the network runs.
"""
