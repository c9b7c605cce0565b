"""Functions of each element that have an ONNX operator of their own."""

from __future__ import annotations

import numpy as np
from onnx import helper

from hw.errors import InputError
from hw.network.graph.plain import Call
from hw.network.graph.transformer.blocks import Function
from hw.network.graph.unary import FUNCTIONS

_NAMES = ("Gelu", "Relu", "Tanh", "Sigmoid", "HardSwish", "Erf")
#: Points that distinguish the functions.
_POINTS = np.linspace(-6, 6, 97)
#: An operator set that has all of them.
_OPSET = 20


def operator_of(block: Function) -> str:
    """Return the ONNX operator that a function is.

    Gelu's approximation by tanh counts as Gelu.  Raises `InputError` for a function that has none.
    """
    results = np.asarray(block.real(_POINTS), np.float64)
    for op in _NAMES:
        call = Call(
            node=helper.make_node(op, ["x"], ["y"]),
            operands=(),
            values={},
            constants={},
            output=(),
            opset=_OPSET,
            constant=lambda constant, shape: "",
        )
        found = np.asarray(FUNCTIONS[op](call)(_POINTS), np.float64)
        if np.allclose(found, results, rtol=1e-4, atol=1e-3):
            return op
    raise InputError(f"function of operator {block.name!r}", block.op, f"one of {', '.join(_NAMES)}")
