"""Networks of one layer with drawn numbers, without ONNX."""

from __future__ import annotations

import random

import numpy as np

from hw.network.graph.network import Convolution, Network, Operator, Sum, Table, Value, Window


def drawn_value(rng: random.Random, name: str, shape: tuple[int, int, int]) -> Value:
    """Return a value with a drawn scale and zero point."""
    scale = float(np.float32(2 ** rng.uniform(-6, 1)))
    return Value(name=name, shape=shape, scale=scale, zero=rng.randint(-128, 127))


def drawn_convolution(rng: random.Random, *, most_channels: int = 40, most_side: int = 9) -> Network:
    """Return a network of a convolution, often with a sum and a table behind it."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    while True:
        kernel = rng.choice([(1, 1), (1, 1), (3, 3), (2, 3), (5, 1)])
        dilations = rng.choice([(1, 1), (1, 1), (2, 1), (1, 2)])
        strides = rng.choice([(1, 1), (1, 1), (2, 2), (1, 2)])
        pads = tuple(rng.randint(0, size // 2) for size in (*kernel, *kernel))
        window = Window(kernel=kernel, strides=strides, dilations=dilations, pads=pads)
        height, width = rng.randint(1, most_side), rng.randint(1, most_side)
        size = window.output(height, width)
        if min(size) >= 1:
            break
    groups = rng.choice([1, 1, 1, 2])
    channels = groups * rng.randint(1, most_channels // groups)
    outputs = groups * rng.randint(1, most_channels // groups)
    source = drawn_value(rng, "source", (height, width, channels))
    result = drawn_value(rng, "result", (*size, outputs))
    taps = kernel[0] * kernel[1] * channels // groups
    # Results spread over int8.
    spread = result.scale / (source.scale * np.sqrt(taps) * 1000)
    convolution = Convolution(
        name="convolution",
        inputs=("source",),
        output="result",
        weights=numbers.integers(-128, 128, (*kernel, channels // groups, outputs)).astype(np.int8),
        bias=numbers.integers(-20000, 20000, outputs).astype(np.int32),
        weight_scales=(spread * 2 ** numbers.uniform(-1, 5, outputs)).astype(np.float32),
        window=window,
        groups=groups,
        low=rng.choice([-128, -20]),
    )
    operators: list[Operator] = [convolution]
    values = {"source": source, "result": result}
    inputs, last = ["source"], "result"
    if rng.random() < 0.4:
        values["other"] = drawn_value(rng, "other", result.shape)
        largest = max(result.scale, values["other"].scale)
        total = drawn_value(rng, "total", result.shape)
        scale = float(np.float32(largest * rng.uniform(0.5, 2)))
        values["total"] = Value(name="total", shape=total.shape, scale=scale, zero=total.zero)
        operators.append(Sum(name="sum", inputs=("result", "other"), output="total", high=100))
        inputs, last = [*inputs, "other"], "total"
    if rng.random() < 0.3:
        values["mapped"] = drawn_value(rng, "mapped", result.shape)
        table = numbers.integers(-128, 128, 256).astype(np.int8)
        operators.append(
            Table(name="table", inputs=(last,), output="mapped", function="Drawn", results=table)
        )
        last = "mapped"
    return Network(
        name="layer",
        values=values,
        operators=tuple(operators),
        inputs=tuple(inputs),
        outputs=(last,),
        constants={},
    )
