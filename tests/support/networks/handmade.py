"""A builder of QDQ models with their values, for cases that no quantizer writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

#: Version of the file format that every onnxruntime with these operators reads.
_IR_VERSION = 8


class Handmade:
    """A QDQ model in the making; most methods return a tensor's name.

    It has the input ``x``, real numbers, and ``image``, the same behind its scale.
    """

    def __init__(self, shape: Sequence[int], *, opset: int = 17, seed: int = 0) -> None:
        self._nodes: list[Any] = []
        self._parameters: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._opset = opset
        self._rng = np.random.default_rng(seed)
        self.image = self.stored(self.input("x", shape), 0.05, 3)

    def input(self, name: str, shape: Sequence[int], kind: int = TensorProto.FLOAT) -> str:
        """Declare an input."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: int = TensorProto.FLOAT) -> None:
        """Declare an output."""
        self._outputs.append(helper.make_tensor_value_info(name, kind, None))

    def constant(self, values: ArrayLike) -> str:
        """Add a constant."""
        name = f"c{len(self._parameters)}"
        self._parameters.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, op: str, *operands: str, **attributes: Any) -> str:
        """Add an operator of one result."""
        name = f"{op.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, list(operands), [name], name=name, **attributes))
        return name

    def quantized(self, x: str, scale: float = 0.0613, zero: int = -5, kind: Any = np.int8) -> str:
        """Add a QuantizeLinear."""
        return self.add("QuantizeLinear", x, self.constant(np.float32(scale)), self.constant(kind(zero)))

    def real(self, q: str, scale: ArrayLike = 0.0613, zero: ArrayLike = -5, **attributes: Any) -> str:
        """Add a DequantizeLinear of an int8 tensor."""
        operands = self.constant(np.float32(scale)), self.constant(np.asarray(zero, np.int8))
        return self.add("DequantizeLinear", q, *operands, **attributes)

    def stored(self, x: str, scale: float = 0.0613, zero: int = -5) -> str:
        """Add both."""
        return self.real(self.quantized(x, scale, zero), scale, zero)

    def weights(self, *shape: int, scales: ArrayLike = 0.00217, axis: int = 0) -> str:
        """Add drawn weights behind their scales."""
        numbers: NDArray[np.int8] = self._rng.integers(-127, 128, shape).astype(np.int8)
        zeros = np.zeros(np.shape(scales), np.int8)
        return self.real(self.constant(numbers), scales, zeros, **({"axis": axis} if zeros.ndim else {}))

    def model(self) -> bytes:
        """Return the model in ONNX's binary form."""
        graph = helper.make_graph(self._nodes, "handmade", self._inputs, self._outputs, self._parameters)
        sets = [helper.make_opsetid("", self._opset), helper.make_opsetid("com.microsoft", 1)]
        return bytes(helper.make_model(graph, opset_imports=sets, ir_version=_IR_VERSION).SerializeToString())
