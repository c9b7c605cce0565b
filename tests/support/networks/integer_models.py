"""``python -m tests.support.networks.integer_models NAME``: a quantized model of drawn integers, as ONNX.

The shapes are those of a published network.  Scales come from drawn samples of each tensor instead of a
calibration, so that results are spread over int8; a model takes a second or two.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.support.networks import convolutional
from tests.support.networks.builder import OPSET

#: Published networks, by name.
NETWORKS: Mapping[str, Callable[[int], bytes]] = {
    "resnet18": convolutional.resnet18,
    "resnet50": convolutional.resnet50,
    "squeezenet": convolutional.squeezenet,
    "mobilenet_v2": convolutional.mobilenet_v2,
    "vgg16": convolutional.vgg16,
}
_MICROSOFT = "com.microsoft"
#: Root mean square of the drawn weights.
_WEIGHT = float(np.sqrt(np.mean(np.arange(-127.0, 128) ** 2)))
_SAMPLES = 4096


def integer_model(name: str, side: int = 224) -> bytes:
    """Return a published network with drawn integers, for images of ``side`` rows, in QOperator form."""
    return with_integers(NETWORKS[name](side))


def with_integers(model: bytes, seed: int = 0) -> bytes:
    """Return a model of shapes in QOperator form, with drawn weights, biases, scales and zero points.

    A MatMul has an Add with a bias behind it.  A Relu follows a convolution, such a product or a sum.
    """
    writer = _Writer(onnx.load_model_from_string(model).graph, np.random.default_rng(seed))
    return writer.model()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tensor:
    """A tensor of int8, and samples of its real numbers."""

    name: str
    scale: float
    zero: int
    samples: NDArray[np.float64]

    @property
    def factors(self) -> tuple[str, str]:
        """Names of scale and zero point."""
        return f"{self.name}.scale", f"{self.name}.zero"


class _Writer:
    """Writes a node for each node of the source; nodes that join one before them are left out."""

    def __init__(self, source: onnx.GraphProto, rng: np.random.Generator) -> None:
        self._source, self._rng = source, rng
        self._graph = onnx.GraphProto(name=source.name)
        self._shapes = {each.name: tuple(each.dims) for each in source.initializer}
        self._readers = {name: node for node in source.node for name in node.input}
        self._tensors: dict[str, _Tensor] = {}
        #: Results of nodes that another node computes with.
        self._joined: set[str] = set()

    def model(self) -> bytes:
        """Write all nodes and return the model."""
        for value in self._source.input:
            self._graph.input.append(value)
            image = self._tensor(value.name, self._rng.normal(size=_SAMPLES))
            self._node("QuantizeLinear", (value.name, *image.factors), image)
        rules = {
            "Conv": self._conv,
            "MatMul": self._product,
            "Add": self._sum,
            "Concat": self._concat,
            "GlobalAveragePool": self._average,
            "MaxPool": self._keeping,
            "Flatten": self._keeping,
        }
        for node in self._source.node:
            if node.output[0] not in self._joined:
                rules[node.op_type](node)
        for value in self._source.output:
            made = self._tensors[value.name]
            inputs = [made.name, *made.factors]
            self._graph.node.append(helper.make_node("DequantizeLinear", inputs, [value.name]))
            self._graph.output.append(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, None))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(_MICROSOFT, 1)]
        made_model = helper.make_model(self._graph, opset_imports=opsets, ir_version=9)
        return bytes(made_model.SerializeToString())

    def _constant(self, name: str, array: Any) -> str:
        self._graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _node(self, op: str, inputs: tuple[str, ...], made: _Tensor, **attributes: Any) -> None:
        """Add a node that makes a tensor."""
        if (op.startswith("QLinear") and op != "QLinearConv") or op == "QGemm":
            attributes["domain"] = _MICROSOFT
        self._graph.node.append(helper.make_node(op, list(inputs), [made.name], name=made.name, **attributes))

    def _tensor(self, name: str, samples: NDArray[np.float64], *, before: _Tensor | None = None) -> _Tensor:
        """Declare a tensor whose int8 holds nearly all of its samples, or has the factors of another one."""
        if before is None:
            low, high = min(0.0, float(np.quantile(samples, 0.001))), float(np.quantile(samples, 0.999))
            scale = float(np.float32((high - low) / 255))
            zero = int(np.clip(np.rint(-128 - low / scale), -128, 127))
        else:
            scale, zero = before.scale, before.zero
        made = _Tensor(name=f"{name}.integers", scale=scale, zero=zero, samples=samples)
        self._constant(made.factors[0], np.float32(scale))
        self._constant(made.factors[1], np.int8(zero))
        self._tensors[name] = made
        return made

    def _last(self, name: str) -> tuple[str, bool]:
        """Return the name of a result behind the Relu that reads it, and whether there is one."""
        reader = self._readers.get(name)
        if reader is None or reader.op_type != "Relu":
            return name, False
        self._joined.add(reader.output[0])
        return reader.output[0], True

    def _weighted(
        self, node: onnx.NodeProto, name: str, axis: int
    ) -> tuple[_Tensor, _Tensor, tuple[str, ...]]:
        """Draw the parameters of a node whose result is ``name``: real sums have a deviation of about 1.

        Returns its input, its result, and the operands behind the input.
        """
        before = self._tensors[node.input[0]]
        shape = self._shapes[node.input[1]]
        outputs = shape[axis]
        fan_in = np.prod(shape) / outputs
        weights = self._constant(f"{name}.weights", self._rng.integers(-127, 128, shape, np.int8))
        deviation = np.sqrt(fan_in * np.mean(before.samples**2)) * _WEIGHT
        spread = 2 ** self._rng.uniform(-0.5, 0.5, outputs) / deviation
        scales = spread.astype(np.float32)
        bias = np.rint(self._rng.normal(size=outputs) * 0.3 / (before.scale * spread)).astype(np.int32)
        samples = self._rng.normal(size=_SAMPLES)
        last, rectified = self._last(name)
        made = self._tensor(last, np.maximum(samples, 0) if rectified else samples)
        operands = (
            weights,
            self._constant(f"{name}.weight_scales", scales),
            self._constant(f"{name}.weight_zeros", np.zeros(outputs, np.int8)),
        )
        self._constant(f"{name}.bias", bias)
        return before, made, operands

    def _conv(self, node: onnx.NodeProto) -> None:
        name = node.output[0]
        before, made, operands = self._weighted(node, name, 0)
        kept = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        inputs = (before.name, *before.factors, *operands, *made.factors, f"{name}.bias")
        self._node("QLinearConv", inputs, made, **kept)

    def _product(self, node: onnx.NodeProto) -> None:
        (biased,) = self._readers[node.output[0]].output
        self._joined.add(biased)
        before, made, operands = self._weighted(node, biased, 1)
        inputs = (before.name, *before.factors, *operands, f"{biased}.bias", *made.factors)
        self._node("QGemm", inputs, made)

    def _sum(self, node: onnx.NodeProto) -> None:
        first, second = (self._tensors[name] for name in node.input)
        last, rectified = self._last(node.output[0])
        samples = first.samples + self._rng.permutation(second.samples)
        made = self._tensor(last, np.maximum(samples, 0) if rectified else samples)
        inputs = (first.name, *first.factors, second.name, *second.factors, *made.factors)
        self._node("QLinearAdd", inputs, made)

    def _concat(self, node: onnx.NodeProto) -> None:
        parts = [self._tensors[name] for name in node.input]
        made = self._tensor(
            node.output[0], self._rng.permutation(np.concatenate([each.samples for each in parts]))
        )
        operands = [name for part in parts for name in (part.name, *part.factors)]
        self._node("QLinearConcat", (*made.factors, *operands), made, axis=1)

    def _average(self, node: onnx.NodeProto) -> None:
        before = self._tensors[node.input[0]]
        # Pixels of one channel are alike.
        made = self._tensor(node.output[0], (before.samples + np.mean(before.samples)) / 2)
        self._node(
            "QLinearGlobalAveragePool", (before.name, *before.factors, *made.factors), made, channels_last=0
        )

    def _keeping(self, node: onnx.NodeProto) -> None:
        before = self._tensors[node.input[0]]
        samples = before.samples
        if node.op_type == "MaxPool":
            samples = np.max([self._rng.permutation(samples) for _ in range(3)], axis=0)
        made = self._tensor(node.output[0], samples, before=before)
        kept = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        self._node(node.op_type, (before.name,), made, **kept)


def main() -> None:
    """Write models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=NETWORKS, metavar="NAME")
    parser.add_argument("-o", "--output", type=Path, default=Path("build"), help="folder")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    for name in given.names:
        (given.output / f"{name}.onnx").write_bytes(integer_model(name))
        print(given.output / f"{name}.onnx")


if __name__ == "__main__":
    main()
