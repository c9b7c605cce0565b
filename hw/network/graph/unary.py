"""Functions of each element alone, which become tables of 256 results."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hw.network.graph.network import Table
from hw.network.graph.plain import Call, bounds
from hw.network.graph.refs import Array, Pending


def _unary(function: Callable[[Call], Callable[[Array], Array]]) -> Callable[[Call], Pending]:
    """Return the rule of a function of each element alone."""

    def rule(call: Call) -> Pending:
        source, _ = call.real()
        return call.pending(
            Table.kind, (source.value,), source.order, function=call.node.op_type, real=function(call)
        )

    return rule


def _erf(real: Array) -> Array:
    return np.vectorize(math.erf)(real)


def _sigmoid(real: Array) -> Array:
    return 1 / (1 + np.exp(-real.astype(np.float64)))


def _clip(call: Call) -> Callable[[Array], Array]:
    low, high = bounds(call.node, call.constants)
    return lambda real: np.clip(real, low, high)


def _gelu(call: Call) -> Callable[[Array], Array]:
    if call.attributes.get("approximate", b"none") == b"tanh":
        return lambda real: real * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (real + 0.044715 * real**3)))
    return lambda real: real * 0.5 * (1 + _erf(real / math.sqrt(2)))


#: Functions of each element alone, by operator; their formulas are ONNX's.
FUNCTIONS: dict[str, Callable[[Call], Callable[[Array], Array]]] = {
    "Relu": _clip,
    "Clip": _clip,
    "Sigmoid": lambda call: _sigmoid,
    "Tanh": lambda call: np.tanh,
    "Erf": lambda call: _erf,
    "Exp": lambda call: np.exp,
    "Abs": lambda call: np.abs,
    "Neg": lambda call: np.negative,
    "Softplus": lambda call: lambda real: np.logaddexp(0, real),
    "LeakyRelu": lambda call: (
        lambda real: np.where(real < 0, np.float32(call.attributes.get("alpha", 0.01)) * real, real)
    ),
    "Elu": lambda call: (
        lambda real: np.where(real < 0, call.attributes.get("alpha", 1.0) * np.expm1(real), real)
    ),
    "HardSigmoid": lambda call: (
        lambda real: np.clip(
            call.attributes.get("alpha", 0.2) * real + call.attributes.get("beta", 0.5), 0, 1
        )
    ),
    "HardSwish": lambda call: lambda real: real * np.clip(real / 6 + 0.5, 0, 1),
    "Gelu": _gelu,
}
#: Rules of the same operators.
UNARY: dict[str, Callable[[Call], Pending]] = {name: _unary(each) for name, each in FUNCTIONS.items()}
