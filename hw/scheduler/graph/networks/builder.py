"""Builder of ONNX models that have the shapes of their parameters and no values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import TensorProto, helper

#: ONNX operator set the models are written in.
OPSET = 20


class Builder:
    """An ONNX model in the making; every method adds an operator and gives its output's name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._count = 0

    def input(self, name: str, *shape: int) -> str:
        """Declare an input."""
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def output(self, name: str) -> None:
        """Declare an output; its shape is inferred."""
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def parameter(self, *shape: int) -> str:
        """Declare a parameter: a shape without values."""
        self._count += 1
        name = f"p{self._count}"
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        self._initializers.append(tensor)
        return name

    def constant(self, values: Sequence[float], kind: int = TensorProto.FLOAT) -> str:
        """Declare a constant with its values."""
        self._count += 1
        name = f"c{self._count}"
        self._initializers.append(helper.make_tensor(name, kind, [len(values)], values))
        return name

    def whole(self, *values: int) -> str:
        """Declare a constant of whole numbers."""
        return self.constant(values, TensorProto.INT64)

    def add(self, op: str, *inputs: str, name: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add any operator."""
        names = [name] if outputs == 1 else [f"{name}.{index}" for index in range(outputs)]
        self._nodes.append(helper.make_node(op, list(inputs), names, name=name, **attributes))
        return names[0] if outputs == 1 else names

    def conv(
        self,
        x: str,
        channels: tuple[int, int],
        *,
        name: str,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
    ) -> str:
        """Add a square convolution that keeps the size, up to the stride, with a bias."""
        weight = self.parameter(channels[1], channels[0] // groups, kernel, kernel)
        return str(
            self.add(
                "Conv", x, weight, self.parameter(channels[1]), name=name, kernel_shape=[kernel] * 2,
                strides=[stride] * 2, pads=[(kernel - 1) // 2] * 4, group=groups,
            )
        )  # fmt: skip

    def relu(self, x: str) -> str:
        """Add a rectifier."""
        return str(self.add("Relu", x, name=f"{x}.relu"))

    def pool(self, x: str, *, name: str, kernel: int, stride: int) -> str:
        """Add a maximum over squares."""
        pads = [(kernel - 1) // 2] * 4
        shape, strides = [kernel] * 2, [stride] * 2
        return str(self.add("MaxPool", x, name=name, kernel_shape=shape, strides=strides, pads=pads))

    def dense(self, x: str, features: tuple[int, int], *, name: str) -> str:
        """Add a product with a parameter matrix, and a bias."""
        product = self.add("MatMul", x, self.parameter(*features), name=f"{name}.product")
        return str(self.add("Add", product, self.parameter(features[1]), name=name))

    def layer_norm(self, x: str, features: int, *, name: str) -> str:
        """Add a layer normalization over the last dimension."""
        parameters = self.parameter(features), self.parameter(features)
        return str(self.add("LayerNormalization", x, *parameters, name=name, axis=-1))

    def reshape(self, x: str, *shape: int) -> str:
        """Give a tensor another shape."""
        self._count += 1
        return str(self.add("Reshape", x, self.whole(*shape), name=f"{x}.view{self._count}"))

    def model(self) -> bytes:
        """Give the model in ONNX's binary form."""
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._initializers)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        return bytes(made.SerializeToString())
