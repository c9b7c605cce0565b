"""Shape rules, one for each operator: from the operands' shapes and values to the results' shapes.

Each follows the specification's text or, where that leaves something open, onnxruntime.  A rule raises
`Misfit` for operands that do not fit, and `Unknown` if the result's shape depends on values that are known
only when the network runs.
"""
