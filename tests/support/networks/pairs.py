"""Models of one QLinear operator of two operands or one, and all pairs of bytes through onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from hw.network.graph.network import Value
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.sums import ALL_PAIRS, SumRule
from sim.golden.network import execute

#: Shape of all pairs.
SHAPE = (1, 4, 128, 128)


@dataclass(frozen=True, kw_only=True)
class Scales:
    """Scales and zero points of operands and of the result, the last; zero points as stored, int8."""

    scales: tuple[float, ...]
    zeros: tuple[int, ...]
    unsigned: bool = False

    @property
    def values(self) -> list[Value]:
        """The values of a network."""
        return [
            Value(
                name=f"v{n}",
                shape=(1, 1, 1),
                scale=float(np.float32(scale)),
                zero=zero,
                unsigned=self.unsigned,
            )
            for n, (scale, zero) in enumerate(zip(self.scales, self.zeros, strict=True))
        ]


#: Scales of sums that need one exception, and two, also with factors of fewer fraction bits.
EXCEPTIONAL = [
    (1, Scales(scales=(0.512053370475769, 0.3613009750843048, 1.3225302696228027), zeros=(-21, 4, -54))),
    (
        2,
        Scales(
            scales=(0.477323442697525, 0.4413808584213257, 1.2662100791931152),
            zeros=(107, 58, 103),
            unsigned=True,
        ),
    ),
    (
        2,
        Scales(
            scales=(1.972734808921814, 0.6669913530349731, 0.05265054106712341),
            zeros=(86, 18, -34),
            unsigned=True,
        ),
    ),
]
#: Scales of a product that needs two exceptions.
EXCEPTIONAL_PRODUCT = Scales(scales=(0.051, 0.75, 0.411), zeros=(47, 60, 26))


def drawn_scales(rng: np.random.Generator, *, ties: bool = False) -> Scales:
    """Draw scales of a sum; with ``ties`` many results lie at exact ties, beside an odd zero point."""
    first, second = np.exp(rng.uniform(-1.5, 1.5, 2))
    result = max(first, second) * np.exp(rng.uniform(-0.7, 1))
    zeros = rng.integers(-128, 128, 3)
    if ties:
        second = first / rng.choice([1, 2])
        result, zeros[2] = 2 * first, zeros[2] | 1
    scales = tuple(float(np.float32(each)) for each in (first, second, result))
    return Scales(scales=scales, zeros=tuple(map(int, zeros)), unsigned=bool(rng.integers(2)))


def every_pair(shapes: Sequence[Sequence[int]] = (SHAPE, SHAPE)) -> list[NDArray[np.int8]]:
    """Return all stored pairs, or for shapes with 256 elements the bytes of that operand."""
    grid = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij")
    found = []
    for side, shape in zip(grid, shapes, strict=True):
        bytes_of = side if np.prod(shape) > 256 else np.arange(-128, 128)
        found.append(bytes_of.astype(np.int8).reshape(shape))
    return found


def operator_model(kind: str, given: Scales, shapes: Sequence[Sequence[int]], **attributes: object) -> bytes:
    """Return a model of one operator of onnxruntime's own set."""
    kinds = (np.uint8, TensorProto.UINT8) if given.unsigned else (np.int8, TensorProto.INT8)
    constants, names = [], []
    for n, (scale, zero) in enumerate(zip(given.scales, given.zeros, strict=True)):
        constants.append(numpy_helper.from_array(np.float32(scale), f"scale_{n}"))
        constants.append(numpy_helper.from_array(kinds[0](zero + 128 * given.unsigned), f"zero_{n}"))
        names += [f"in_{n}"] * (n < len(shapes)) + [f"scale_{n}", f"zero_{n}"]
    node = helper.make_node(kind, names, ["out"], name="node", domain="com.microsoft", **attributes)
    inputs = [helper.make_tensor_value_info(f"in_{n}", kinds[1], shape) for n, shape in enumerate(shapes)]
    output = helper.make_tensor_value_info("out", kinds[1], None)
    graph = helper.make_graph([node], "one", inputs, [output], constants)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()


def both(
    kind: str, given: Scales, stored: Sequence[NDArray[np.int8]], **attributes: object
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the golden model's and onnxruntime's results as stored, in the order NCHW."""
    model = operator_model(kind, given, [each.shape for each in stored], **attributes)
    own = 128 * given.unsigned
    kind_of = np.uint8 if given.unsigned else np.int8
    feeds = {f"in_{n}": (each.astype(int) + own).astype(kind_of) for n, each in enumerate(stored)}
    (theirs,) = onnxruntime.InferenceSession(model).run(None, feeds)
    network = read_network(model)
    inputs = {f"in_{n}": each[0].transpose(1, 2, 0) for n, each in enumerate(stored)}
    mine = execute(network, inputs)["out"].transpose(2, 0, 1)[None]
    return mine.astype(np.int64), theirs.astype(np.int64) - own


def swapped(given: Scales) -> Scales:
    """Return the scales with the operands in the other order."""
    order = (1, 0, 2)
    scales = tuple(given.scales[n] for n in order)
    return replace(given, scales=scales, zeros=tuple(given.zeros[n] for n in order))


def pairs_next_to_ties(rule: SumRule, given: Scales, most: int) -> list[Sequence[int]]:
    """Return up to ``most`` pairs of a sum within 2^-9 of a tie, exceptions before them, others behind."""
    first, second = (each - zero for each, zero in zip(ALL_PAIRS, given.zeros, strict=False))
    rest = (first * rule.first + second * rule.second) % 2**rule.shift / 2**rule.shift
    near = np.argwhere(np.abs(rest - 0.5) < 2**-9) - 128
    rng = np.random.default_rng(0)
    rng.shuffle(near)
    # Neighbours of an exception are none.
    beside = [(max(a - 1, -128), b) for a, b in rule.exceptions]
    beside += [(a, min(b + 1, 127)) for a, b in rule.exceptions]
    drawn = rng.integers(-128, 128, (100, 2)).tolist()
    # Unused exceptions are zeros.
    return [*rule.exceptions, (0, 0), *beside, *near[:most].tolist(), *drawn]
