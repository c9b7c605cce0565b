"""Builder of ONNX models that have the shapes of their parameters and no values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import TensorProto, helper

#: ONNX operator set the models are written in.
OPSET = 20


class Builder:
    """An ONNX model in the making; every method adds an operator and returns its output's name.

    Members
    -------
    width : dict of str to int
        Channels of each image (N, C, H, W), features of each sequence (N, T, F).
    """

    def __init__(self, name: str) -> None:
        self._graph = onnx.GraphProto(name=name)
        self.width: dict[str, int] = {}

    def input(self, name: str, *shape: int) -> str:
        """Declare an input."""
        self._graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.width[name] = shape[1] if len(shape) == 4 else shape[-1]
        return name

    def output(self, name: str) -> None:
        """Declare an output; its shape is inferred."""
        self._graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def parameter(self, *shape: int) -> str:
        """Declare a parameter: a shape without values."""
        name, external = f"p{len(self._graph.initializer)}", TensorProto.EXTERNAL
        self._graph.initializer.add(
            name=name, data_type=TensorProto.FLOAT, dims=shape, data_location=external
        )
        return name

    def constant(self, values: Sequence[float], kind: int = TensorProto.FLOAT) -> str:
        """Declare a constant with its values."""
        name = f"p{len(self._graph.initializer)}"
        self._graph.initializer.append(helper.make_tensor(name, kind, [len(values)], values))
        return name

    def scalar(self, value: float) -> str:
        """Declare a constant without dimensions."""
        name = f"p{len(self._graph.initializer)}"
        self._graph.initializer.append(helper.make_tensor(name, TensorProto.FLOAT, [], [value]))
        return name

    def add(self, op: str, *inputs: str, name: str, width: int = 0, **attributes: Any) -> str:
        """Add any operator of one output, as wide as the first input unless said."""
        self._graph.node.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        self.width[name] = width or self.width[inputs[0]]
        return name

    def conv(
        self,
        x: str,
        channels: int,
        *,
        name: str,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        padded: bool = True,
    ) -> str:
        """Add a square convolution with a bias; ``padded`` ones keep the size, up to the stride."""
        parameters = (
            self.parameter(channels, self.width[x] // groups, kernel, kernel),
            self.parameter(channels),
        )
        return self.add(
            "Conv", x, *parameters, name=name, width=channels, kernel_shape=[kernel] * 2,
            strides=[stride] * 2, pads=[(kernel - 1) // 2 * padded] * 4, group=groups,
        )  # fmt: skip

    def depthwise(self, x: str, *, name: str, stride: int = 1) -> str:
        """Add a 3 x 3 convolution of each channel by itself."""
        return self.conv(x, self.width[x], name=name, kernel=3, stride=stride, groups=self.width[x])

    def relu(self, x: str) -> str:
        """Add a rectifier."""
        return self.add("Relu", x, name=f"{x}.relu")

    def pool(self, x: str, *, name: str, kernel: int, stride: int, padded: bool = True) -> str:
        """Add a maximum over squares; they begin outside the image where ``padded``."""
        pads, strides = [(kernel - 1) // 2 * padded] * 4, [stride] * 2
        return self.add("MaxPool", x, name=name, kernel_shape=[kernel] * 2, strides=strides, pads=pads)

    def concat(self, *inputs: str, name: str) -> str:
        """Put the channels of images side by side."""
        return self.add("Concat", *inputs, name=name, width=sum(self.width[x] for x in inputs), axis=1)

    def halves(self, x: str, *, name: str) -> tuple[str, str]:
        """Part the channels of an image in two."""
        half, parts = self.width[x] // 2, (f"{name}.0", f"{name}.1")
        sizes = self.constant([half, half], TensorProto.INT64)
        self._graph.node.append(helper.make_node("Split", [x, sizes], parts, name=name, axis=1))
        self.width.update(dict.fromkeys(parts, half))
        return parts

    def dense(self, x: str, features: int, *, name: str) -> str:
        """Add a product with a parameter matrix, and a bias."""
        weight = self.parameter(self.width[x], features)
        product = self.add("MatMul", x, weight, name=f"{name}.product", width=features)
        return self.add("Add", product, self.parameter(features), name=name)

    def layer_norm(self, x: str, *, name: str) -> str:
        """Add a layer normalization over the features."""
        parameters = self.parameter(self.width[x]), self.parameter(self.width[x])
        return self.add("LayerNormalization", x, *parameters, name=name, axis=-1)

    def reshape(self, x: str, *shape: int) -> str:
        """Return a sequence another shape, whose last extent are its features."""
        target, name = self.constant(shape, TensorProto.INT64), f"{x}.view{len(self._graph.node)}"
        return self.add("Reshape", x, target, name=name, width=shape[-1])

    @property
    def nodes(self) -> Sequence[onnx.NodeProto]:
        """The operators added so far."""
        return self._graph.node

    def model(self) -> bytes:
        """Return the model in ONNX's binary form."""
        made = helper.make_model(self._graph, opset_imports=[helper.make_opsetid("", OPSET)])
        return bytes(made.SerializeToString())
