"""Quantized networks for tests: drawn weights in a model of shapes, or a random network."""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from hw.network.graph.quantize import quantize
from tests.support.networks.builder import Builder

#: Seed from which on random networks may have operators of every kind.
ALL_KINDS = 100


def drawn(model: bytes, seed: int = 0) -> bytes:
    """Return a model with values for the parameters that have none: weights of unit gain, small biases."""
    rng = np.random.default_rng(seed)
    proto = onnx.load_model_from_string(model)
    for number, parameter in enumerate(proto.graph.initializer):
        if parameter.data_location != TensorProto.EXTERNAL:
            continue
        shape = tuple(parameter.dims)
        fan_in = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
        gain = 0.1 if len(shape) == 1 else np.sqrt(2 / fan_in)
        values = (rng.normal(size=shape) * gain).astype(np.float32)
        proto.graph.initializer[number].CopyFrom(numpy_helper.from_array(values, parameter.name))
    return bytes(proto.SerializeToString())


def samples(model: bytes, count: int = 2, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Return drawn inputs of a model, ``count`` along the first dimension."""
    rng = np.random.default_rng(seed)
    graph = onnx.load_model_from_string(model).graph
    return {
        value.name: rng.normal(
            size=(count, *(each.dim_value for each in value.type.tensor_type.shape.dim[1:]))
        ).astype(np.float32)
        for value in graph.input
    }


def quantized(model: bytes, *, operators: bool = False, unsigned: bool = False, seed: int = 0) -> bytes:
    """Return a model of shapes with drawn weights, quantized."""
    filled = drawn(model, seed)
    return quantize(filled, samples(filled, seed=seed), operators=operators, unsigned=unsigned)


def random_network(seed: int, *, side: int = 20) -> bytes:
    """Return a network of two to twelve operators, of odd sizes, without values.

    From seed `ALL_KINDS` on it may have every operator of ``docs/networks.md``.
    ``side``: the image has fewer rows and columns.
    """
    rng = np.random.default_rng(seed)
    net = Builder(f"random_{seed}")
    height, width = (int(extent) for extent in rng.integers(5, side, 2))
    images = [net.input("image", 1, int(rng.choice([1, 3, 8, 17])), height, width)]
    sizes = {images[0]: (height, width)}
    for number in range(int(rng.integers(2, 12))):
        source = images[-1] if rng.random() < 0.7 else images[int(rng.integers(len(images)))]
        made = _grow(net, rng, source, images, sizes, f"op{number}", every=seed >= ALL_KINDS and number > 0)
        images.append(made)
    used = {name for node in net.nodes for name in node.input}
    ends = [name for name in images[1:] if name not in used]
    for name in ends[:-1]:
        net.output(name)
    last = ends[-1]
    if rng.random() < 0.5:
        last = net.add("Flatten", net.add("GlobalAveragePool", last, name="mean"), name="flat")
        last = net.dense(last, int(rng.integers(2, 70)), name="classes")
        if rng.random() < 0.5:
            last = net.add("Softmax", last, name="softmax", axis=-1)
    net.output(last)
    return net.model()


def _grow(
    net: Builder,
    rng: np.random.Generator,
    source: str,
    images: list[str],
    sizes: dict[str, tuple[int, int]],
    name: str,
    *,
    every: bool,
) -> str:
    """Add an operator, and return its result."""
    size = sizes[source]
    kinds = ["conv", "conv", "conv", "grouped", "depthwise", "pool", "mean", "pair", "concat", "table"]
    kind = rng.choice([*kinds, "gate", "clip", "function"] if every else kinds)
    if kind in ("gate", "clip", "function"):
        made = _further(net, rng, str(kind), source, name)
        sizes[made] = size
        return made
    alike = [each for each in images if sizes[each] == size and each != source]
    if kind in ("conv", "grouped", "depthwise"):
        kernel = (int(rng.integers(1, min(4, size[0] + 1))), int(rng.integers(1, min(4, size[1] + 1))))
        strides = [int(each) for each in rng.integers(1, 3, 2)]
        dilations = [
            int(rng.integers(1, 3)) if (k - 1) * 2 < s else 1 for k, s in zip(kernel, size, strict=True)
        ]
        pads = [int(rng.integers(0, k)) for k in (*kernel, *kernel)]
        channels, groups = int(rng.choice([1, 5, 16, 24, 33, 64, 72])), 1
        if kind == "depthwise":
            channels = groups = net.width[source]
        elif kind == "grouped" and net.width[source] % 2 == 0:
            channels, groups = 2 * int(rng.integers(1, 20)), 2
        weights = net.parameter(channels, net.width[source] // groups, *kernel)
        made = net.add(
            "Conv", source, weights, net.parameter(channels), name=name, width=channels, group=groups,
            kernel_shape=list(kernel), strides=strides, dilations=dilations, pads=pads,
        )  # fmt: skip
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        sizes[made] = _after(size, spans, strides, pads)
        if rng.random() < 0.5:
            made, before = net.relu(made), made
            sizes[made] = sizes[before]
        return made
    if kind in ("pool", "mean") and min(size) >= 3:
        pads, strides = (
            [int(each) for each in rng.integers(0, 2, 4)],
            [int(each) for each in rng.integers(1, 3, 2)],
        )
        op = "MaxPool" if kind == "pool" else "AveragePool"
        more = {} if kind == "pool" else {"count_include_pad": int(rng.integers(2))}
        made = net.add(op, source, name=name, kernel_shape=[3, 2], strides=strides, pads=pads, **more)
        sizes[made] = _after(size, [3, 2], strides, pads)
        return made
    same = [each for each in alike if net.width[each] == net.width[source]]
    if kind == "pair" and same:
        made = net.add(str(rng.choice(["Add", "Mul"])), source, same[int(rng.integers(len(same)))], name=name)
    elif kind == "concat" and alike:
        made = net.concat(source, alike[int(rng.integers(len(alike)))], name=name)
    else:
        op = str(rng.choice(["Sigmoid", "LeakyRelu", "Tanh", "HardSigmoid", "HardSwish"]))
        made = net.add(op, source, name=name)
    sizes[made] = size
    return made


def _further(net: Builder, rng: np.random.Generator, kind: str, source: str, name: str) -> str:
    """Add an operator that a network below `ALL_KINDS` does not have; its result has the source's size."""
    if kind == "gate":
        mean = f"{name}.mean"
        if rng.random() < 0.5:
            axes = net.constant([2, 3], TensorProto.INT64)
            mean = net.add("ReduceMean", source, axes, name=mean, keepdims=1)
        else:
            mean = net.add("GlobalAveragePool", source, name=mean)
        if rng.random() < 0.5:
            mean = net.conv(mean, net.width[source], name=f"{name}.conv")
        return net.add(
            str(rng.choice(["Mul", "Add"])), source, net.add("Sigmoid", mean, name=f"{name}.gate"), name=name
        )
    if kind == "clip":
        bounds = (net.scalar(float(-rng.random())), net.scalar(float(0.2 + rng.random())))
        return net.add("Clip", source, *bounds, name=name)
    functions = ["Elu", "Gelu", "Erf", "Exp", "Abs", "Neg", "Softplus"]
    return net.add(str(rng.choice(functions)), source, name=name)


def _after(size: tuple[int, int], spans: list[int], strides: list[int], pads: list[int]) -> tuple[int, int]:
    found = [
        (extent + pads[axis] + pads[axis + 2] - spans[axis]) // strides[axis] + 1
        for axis, extent in enumerate(size)
    ]
    return found[0], found[1]
