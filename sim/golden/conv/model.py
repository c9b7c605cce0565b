"""Sums of a convolution, plain or deformable, on integers: no rounding anywhere.

Let x be the map, z its zero point and F the fraction bits of offsets.  Tap (i, j) of the result at (oy, ox)
is taken in row ``oy * stride - pad + i * dilation + dy / 2^F``; the same formula in j yields its column.  The
sample is the bilinear interpolation of the four neighbours, less z, times 4^F: an integer.  A neighbour
outside the map has the value z (ONNX DeformConv-19: it counts nothing).  The sum is ``bias + sum(w * mask *
sample)``: ONNX's result times 4^F, and times 256 with masks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError, check_range
from sim.golden.conv.attributes import Attributes
from sim.golden.products import serial_product

Int = NDArray[np.int64]
Integers = NDArray[np.integer[Any]]

#: Samples of up to 24 bits, times masks of 8 and weights of 7, of as many channels: exact in float64.
MOST_CHANNELS = 2**14
_BORDER = 2  # rows and columns outside the map: a neighbour of any point is in the map or among them
_PLAIN = Attributes()


@dataclass(frozen=True, kw_only=True, eq=False)
class Deformation:
    """The displacement of taps from the regular grid."""

    #: Integers ``[2 * offset_group * kH * kW, oH, oW]``: in units of 2^-F pixels, (y, x) of each tap, as in
    #: ONNX.  If ``square``: ``[oH, oW]``; tap (i, j) moves by it times ``(i - (kH - 1) / 2, j - (kW - 1) /
    #: 2)``.
    offset: Integers
    #: uint8 ``[offset_group * kH * kW, oH, oW]``: weights of samples, in units of 1/256.
    mask: NDArray[np.uint8] | None = None
    fraction_bits: int = 0  #: F: 0 to 8.
    bound: int | None = None  #: N, whole pixels: offsets are clamped to -N ... N.
    square: bool = False  #: One offset a pixel.

    def __post_init__(self) -> None:
        if self.offset.dtype.kind != "i":
            raise InputError("offset", str(self.offset.dtype), "signed integers")
        if self.mask is not None and self.mask.dtype != np.uint8:
            raise InputError("mask", str(self.mask.dtype), "of type uint8")
        check_range("fraction_bits", self.fraction_bits, 0, 8)
        if self.bound is not None and self.bound < 0:
            raise InputError("bound", self.bound, "at least 0")


def accumulators(
    x: NDArray[np.int8],
    w: NDArray[np.int8],
    attributes: Attributes = _PLAIN,
    deformation: Deformation | None = None,
    *,
    zero: int = 0,
    bias: Integers | None = None,
) -> Int:
    """Convolve.

    ``x``: int8 ``[C, H, W]``; the map. ``w``: int8 ``[Cout, C / group, kH, kW]``; weights. ``deformation``:
    offsets and masks; without it there are no fraction bits. ``zero``: zero point of ``x``. ``bias``:
    integers ``[Cout]`` in the scale of the sums.

    Returns int64 ``[Cout, oH, oW]``.

    Raises `InputError` for types or shapes that do not fit together.
    """
    _check(x, w, attributes, zero)
    outputs, _, *kernel = w.shape
    rows, columns = attributes.output_size(x.shape[1:], (kernel[0], kernel[1]))
    if bias is not None and bias.shape != (outputs,):
        raise InputError("bias", bias.shape, f"of shape {(outputs,)}")
    start = np.zeros(outputs, np.int64) if bias is None else bias.astype(np.int64)
    sums = np.tile(start, (rows * columns, 1))
    taps = w.reshape(outputs, w.shape[1], -1)
    for k, sample in enumerate(samples(x, (kernel[0], kernel[1]), attributes, deformation, zero=zero)):
        sums += _products(sample, taps[:, :, k], attributes.group)
    return sums.T.reshape(outputs, rows, columns).copy()


def samples(
    x: NDArray[np.int8],
    kernel: tuple[int, int],
    attributes: Attributes = _PLAIN,
    deformation: Deformation | None = None,
    *,
    zero: int = 0,
) -> Iterator[Int]:
    """Return the samples of every tap, row-major, times their masks: int64 ``[oH * oW, C]``.

    Arguments and errors are those of `accumulators`.
    """
    channels, *size = x.shape
    rows, columns = attributes.output_size((size[0], size[1]), kernel)
    bits = 0 if deformation is None else deformation.fraction_bits
    groups, taps = attributes.offset_group, kernel[0] * kernel[1]
    shifts = _shifts(deformation, kernel, groups, (rows, columns))
    border = ((_BORDER, _BORDER), (_BORDER, _BORDER), (0, 0))
    padded = np.pad(x.transpose(1, 2, 0).astype(np.int64) - zero, border).reshape(-1, channels)
    grids = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    for k in range(taps):
        sample = np.empty((rows * columns, channels), np.int64)
        for group in range(groups):
            own = slice(group * channels // groups, (group + 1) * channels // groups)
            places = []
            for axis, tap in enumerate(divmod(k, kernel[1])):
                at = grids[axis] * attributes.strides[axis] - attributes.pads[axis]
                at = at + tap * attributes.dilations[axis]
                places.append(((at << bits) + shifts[group, k, axis]).reshape(-1))
            sample[:, own] = _bilinear(padded[:, own], size, places[0], places[1], bits)
            if deformation is not None and deformation.mask is not None:
                mask = deformation.mask[group * taps + k].astype(np.int64)
                sample[:, own] *= mask.reshape(-1, 1)
        yield sample


def _check(x: NDArray[np.int8], w: NDArray[np.int8], attributes: Attributes, zero: int) -> None:
    if x.ndim != 3 or x.dtype != np.int8 or not x.size:
        raise InputError("x", f"{x.dtype} {x.shape}", "int8 [C, H, W]")
    if w.ndim != 4 or w.dtype != np.int8 or not w.size:
        raise InputError("w", f"{w.dtype} {w.shape}", "int8 [Cout, C / group, kH, kW]")
    channels, group = len(x), attributes.group
    if channels > MOST_CHANNELS:
        raise InputError("channels", channels, f"at most {MOST_CHANNELS}")
    if channels % group or len(w) % group:
        raise InputError("group", group, f"a divisor of {channels} inputs and of {len(w)} outputs")
    if channels % attributes.offset_group:
        raise InputError("offset_group", attributes.offset_group, f"a divisor of {channels} inputs")
    if w.shape[1] != channels // group:
        raise InputError("w", w.shape, f"of {channels // group} channels, those of x by the group")
    check_range("zero", zero, -128, 127)


def _shifts(
    deformation: Deformation | None, kernel: tuple[int, int], groups: int, size: tuple[int, int]
) -> Int:
    """Return the displacements: ``[offset_group, kH * kW, 2, oH, oW]``."""
    taps = kernel[0] * kernel[1]
    if deformation is None:
        return np.zeros((groups, taps, 2, *size), np.int64)
    mask = deformation.mask
    if mask is not None and mask.shape != (groups * taps, *size):
        raise InputError("mask", mask.shape, f"of shape {(groups * taps, *size)}")
    shape = size if deformation.square else (groups * taps * 2, *size)
    if deformation.offset.shape != shape:
        raise InputError("offset", deformation.offset.shape, f"of shape {shape}")
    offset = deformation.offset.astype(np.int64)
    if deformation.bound is not None:
        reach = deformation.bound << deformation.fraction_bits
        offset = np.clip(offset, -reach, reach)
    if not deformation.square:
        return offset.reshape(groups, taps, 2, *size)
    if not kernel[0] % 2 == kernel[1] % 2 == 1:
        raise InputError("kernel", kernel, "odd, for a square offset has a middle tap")
    middle = (kernel[0] // 2, kernel[1] // 2)
    steps = np.array([[i - middle[0], j - middle[1]] for i in range(kernel[0]) for j in range(kernel[1])])
    return np.broadcast_to(steps[:, :, None, None] * offset, (groups, taps, 2, *size))


def _bilinear(padded: Int, size: list[int], y: Int, x: Int, bits: int) -> Int:
    """Interpolate at (y, x), in units of 2^-bits: 4^bits times the value, ``[points, channels]``."""
    one = 1 << bits
    top, left = (np.clip(at >> bits, -_BORDER, limit) for at, limit in zip((y, x), size, strict=True))
    down, right = ((at & (one - 1))[:, None] for at in (y, x))
    pitch = size[1] + 2 * _BORDER
    first = (top + _BORDER) * pitch + left + _BORDER
    if not bits:
        return padded[first]
    upper = padded[first] * (one - right) + padded[first + 1] * right
    lower = padded[first + pitch] * (one - right) + padded[first + pitch + 1] * right
    return upper * (one - down) + lower * down


def _products(sample: Int, w: NDArray[np.int8], group: int) -> Int:
    """Multiply samples ``[points, C]`` by a tap's weights ``[Cout, C / group]``: ``[points, Cout]``."""
    if w.shape[1] == 1:
        return np.repeat(sample, len(w) // group, axis=1) * w[:, 0].astype(np.int64)
    inputs, outputs = w.shape[1], len(w) // group
    parts = [
        serial_product(
            sample[:, n * inputs : (n + 1) * inputs].astype(np.float64),
            w[n * outputs : (n + 1) * outputs].T.astype(np.float64),
        )
        for n in range(group)
    ]
    return np.concatenate(parts, axis=1).astype(np.int64)
