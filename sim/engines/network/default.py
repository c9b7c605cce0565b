"""The network of a launch without a model: a few small operators of most kinds with drawn integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from hw.network.graph.network import (
    AveragePool,
    Concat,
    Convolution,
    MaxPool,
    Network,
    Operator,
    Product,
    Softmax,
    Sum,
    Table,
    Value,
    Window,
)

_IMAGE, _CLASSES = (15, 13, 3), 10


def default_network(seed: int = 0) -> Network:
    """Return the network; every seed draws other weights for the same operators."""
    made = _Drawn(seed)
    image = made.value("image", _IMAGE)
    x = made.convolution("first", image, 16, kernel=3, stride=2, pad=1, low=-100)
    wide = made.convolution("wide", x, 40, kernel=3, pad=1)
    same = made.convolution("same", x, 40)
    total = made.operator(Sum, "total", (wide, same))
    depth = made.convolution("depth", total, 40, kernel=3, pad=1, groups=40)
    joined = made.operator(Concat, "joined", (depth, total), channels=80)
    small = made.window(MaxPool, "small", joined, 3, 2)
    curve = np.clip(np.rint(100 * np.tanh(np.arange(-128, 128) / 40)), -128, 127).astype(np.int8)
    curved = made.operator(Table, "curved", (small,), function="Tanh", results=curve)
    gate = made.window(AveragePool, "gate", curved, made.shape(curved)[0], 1)
    gated = made.operator(Product, "gated", (curved, gate), scale=1 / 16)
    pooled = made.window(AveragePool, "pooled", gated, made.shape(gated)[0], 1)
    classes = made.convolution("classes", pooled, _CLASSES)
    shares = made.operator(Softmax, "shares", (classes,), scale=1 / 256, zero=-128)
    return made.network((shares, gated))


class _Drawn:
    """Collects values and operators, with scales at which results are spread over int8."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._values: dict[str, Value] = {}
        self._operators: list[Operator] = []

    def value(self, name: str, shape: tuple[int, int, int], scale: float = 1 / 32, zero: int = 3) -> str:
        """Add a value."""
        exact = float(np.float32(scale))
        self._values[name] = Value(name=name, shape=shape, scale=exact, zero=zero)
        return name

    def shape(self, name: str) -> tuple[int, int, int]:
        """Return a value's shape."""
        return self._values[name].shape

    def convolution(
        self,
        name: str,
        source: str,
        channels: int,
        *,
        kernel: int = 1,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
        low: int = -128,
    ) -> str:
        """Add a convolution of a square kernel."""
        height, width, inputs = self.shape(source)
        window = Window(kernel=(kernel, kernel), strides=(stride, stride), pads=(pad,) * 4)
        weights = self._rng.integers(-127, 128, (kernel, kernel, inputs // groups, channels)).astype(np.int8)
        self.value(name, (*window.output(height, width), channels), zero=-7)
        # A sum of n products of two numbers of 74 each, on average, is brought to about 50.
        scales = self._rng.uniform(0.5, 1, channels) * 50 / (74**2 * np.sqrt(weights[..., 0].size))
        operator = Convolution(
            name=name,
            inputs=(source,),
            output=name,
            low=low,
            weights=weights,
            bias=self._rng.integers(-5000, 5000, channels).astype(np.int32),
            weight_scales=scales.astype(np.float32),
            window=window,
            groups=groups,
        )
        self._operators.append(operator)
        return name

    def window(self, kind: Any, name: str, source: str, kernel: int, stride: int) -> str:
        """Add a pool; a maximum has its source's scale and zero point."""
        height, width, channels = self.shape(source)
        window = Window(kernel=(min(kernel, height), min(kernel, width)), strides=(stride, stride))
        before = self._values[source]
        self.value(name, (*window.output(height, width), channels), before.scale, before.zero)
        self._operators.append(kind(name=name, inputs=(source,), output=name, window=window))
        return name

    def operator(
        self,
        kind: Any,
        name: str,
        sources: tuple[str, ...],
        *,
        channels: int = 0,
        scale: float = 1 / 32,
        zero: int = -7,
        **more: Any,
    ) -> str:
        """Add an operator whose result has the size of its first source."""
        height, width, own = self.shape(sources[0])
        self.value(name, (height, width, channels or own), scale, zero)
        self._operators.append(kind(name=name, inputs=sources, output=name, **more))
        return name

    def network(self, outputs: tuple[str, ...]) -> Network:
        """Return all of it."""
        return Network(
            name="default",
            values=self._values,
            operators=tuple(self._operators),
            inputs=("image",),
            outputs=outputs,
            constants={},
        )
