"""Tensors of convolutions of every kind, drawn at random."""

import contextlib
from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from sim.golden.conv.attributes import Attributes
from sim.golden.conv.model import Deformation


@dataclass
class Drawn:
    """A convolution's tensors; ``offset`` is of every tap, as ONNX takes it."""

    x: np.ndarray
    w: np.ndarray
    zero: int
    attributes: Attributes
    deformation: Deformation | None
    offset: np.ndarray | None


def draw(seed, *, deformable):
    """Draw until the kernel fits into the map."""
    rng = np.random.default_rng(seed)
    drawn = None
    while drawn is None:
        with contextlib.suppress(InputError):  # a kernel that does not fit
            drawn = _draw(rng, deformable)
    return drawn


def _draw(rng, deformable):
    def pick(*values):
        return values[rng.integers(len(values))]

    def pair(most):
        return tuple(rng.integers(1, most, 2).tolist())

    groups = pick(1, 1, 2, 3)
    inputs, outputs = groups * pick(1, 2, 4), groups * pick(1, 2, 5)
    if rng.random() < 0.3:  # depthwise
        groups = inputs = outputs = pick(1, 4, 6)
    offset_groups = pick(*(n for n in range(1, inputs + 1) if inputs % n == 0))
    square = deformable and rng.random() < 0.25
    kernel = (pick(1, 3, 5, 7), pick(1, 3, 5)) if square else tuple(rng.integers(1, 8, 2).tolist())
    if rng.random() < 0.4:
        kernel = (3, 3)
    attributes = Attributes(
        strides=pair(4),
        dilations=pair(4),
        pads=tuple(rng.integers(0, 4, 4).tolist()),
        group=groups,
        offset_group=1 if square else offset_groups,
    )
    size = rng.integers(1, 14, 2).tolist()
    rows, columns = attributes.output_size(size, kernel)
    x = rng.integers(-128, 128, (inputs, *size)).astype(np.int8)
    limit = pick(7, 127)
    w = rng.integers(-limit, limit + 1, (outputs, inputs // groups, *kernel)).astype(np.int8)
    zero = pick(0, -128, 127, int(rng.integers(-128, 128)))
    if not deformable:
        return Drawn(x, w, zero, attributes, None, None)

    bits = pick(0, 3, 4, 5, 6, 8)
    bound = pick(None, 1, 3, 7)
    taps, og = kernel[0] * kernel[1], attributes.offset_group
    spread = pick(1, 4, 20) << bits
    if square:
        given = rng.integers(-spread, spread + 1, (rows, columns))
        used = given if bound is None else np.clip(given, -(bound << bits), bound << bits)
        steps = [(i - kernel[0] // 2, j - kernel[1] // 2) for i in range(kernel[0]) for j in range(kernel[1])]
        offset = np.concatenate([[step[0] * used, step[1] * used] for step in steps])
    else:
        given = rng.integers(-spread, spread + 1, (og, *kernel, 2, rows, columns))
        _to_edges(rng, given, size, kernel, attributes, bits)
        given = given.reshape(-1, rows, columns)
        offset = given if bound is None else np.clip(given, -(bound << bits), bound << bits)
    mask = rng.integers(0, 256, (og * taps, rows, columns)).astype(np.uint8) if rng.random() < 0.5 else None
    deformation = Deformation(
        offset=given.astype(np.int16), mask=mask, fraction_bits=bits, bound=bound, square=square
    )
    return Drawn(x, w, zero, attributes, deformation, offset)


def _to_edges(rng, offset, size, kernel, attributes, bits):
    """Move a part of the points to, or right beside, the first and the last places that count."""
    for axis in (0, 1):
        taps = np.arange(kernel[axis]) * attributes.dilations[axis] - attributes.pads[axis]
        outs = np.arange(offset.shape[4 + axis]) * attributes.strides[axis]
        grid = taps.reshape((-1, 1, 1, 1) if axis == 0 else (1, -1, 1, 1))
        grid = grid + outs.reshape((-1, 1) if axis == 0 else (1, -1))
        part = offset[:, :, :, axis]
        edges = rng.choice([-1, 0, size[axis] - 1, size[axis]], part.shape)
        targets = ((edges - grid) << bits) + rng.integers(-1, 2, part.shape)
        part[...] = np.where(rng.random(part.shape) < 0.3, targets, part)
