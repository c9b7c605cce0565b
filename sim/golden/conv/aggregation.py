"""DCNv3 and DCNv4 as ONNX's deformable convolution: weights of 1, and a mask a tap (``docs/conv.md``)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError

Float = NDArray[np.floating[Any]]


def aggregation(
    x: Float,
    offset: Float,
    mask: Float,
    *,
    kernel: tuple[int, int] = (3, 3),
    dilations: tuple[int, int] = (1, 1),
    group: int,
    offset_scale: float = 1.0,
    remove_center: bool = False,
) -> dict[str, Float]:
    """Return the tensors of ONNX DeformConv for those of DCNv3's operator (2211.05778, InternImage's code).

    There, tap (i, j) of the kernel has the number ``j * kH + i``, and offsets are pairs (x, y).
    ``offset_scale`` multiplies the kernel's own grid around its middle as well as the offsets.  Strides, pads
    and dilations are the same; ``group`` of ONNX is C, and ``offset_group`` is DCNv3's group.  DCNv4
    (2401.06197) differs only in the range of masks.

    ``x``: ``[H, W, C]``; the map, not padded. ``offset``, ``mask``: ``[oH, oW, group * K * 2]``, ``[oH, oW,
    group * K]``; K is ``kH * kW``, one less with ``remove_center``. ``kernel``, ``dilations``: of rows and of
    columns. ``offset_scale``, ``remove_center``: as there.

    Returns ``x`` [C, H, W], ``w`` [C, 1, kH, kW], ``offset`` [2 * group * kH * kW, oH, oW] and ``mask``
    [group * kH * kW, oH, oW].

    Raises `InputError` for a group that does not divide, an even kernel without its middle, or shapes that do
    not fit.
    """
    rows, columns = kernel
    taps = rows * columns
    if x.shape[2] % group:
        raise InputError("group", group, f"a divisor of {x.shape[2]} channels")
    if remove_center and not rows % 2 == columns % 2 == 1:
        raise InputError("kernel", kernel, "odd, for it to have a middle that can be removed")
    out = mask.shape[:2]
    points = taps - remove_center
    for name, given, numbers in (("mask", mask, 1), ("offset", offset, 2)):
        if given.shape != (*out, group * points * numbers):
            raise InputError(name, given.shape, f"of shape {(*out, group * points * numbers)}")
    shifts = offset.reshape(*out, group, points, 2)
    weights = mask.reshape(*out, group, points)
    if remove_center:  # it comes back with a mask of 0
        shifts = np.insert(shifts, taps // 2, 0.0, axis=3)
        weights = np.insert(weights, taps // 2, 0.0, axis=3)
    # [oH, oW, group, j, i, (x, y)] -> [group, i, j, (y, x), oH, oW]
    shifts = shifts.reshape(*out, group, columns, rows, 2)[..., ::-1].transpose(2, 4, 3, 5, 0, 1)
    weights = weights.reshape(*out, group, columns, rows).transpose(2, 4, 3, 0, 1)
    moved = shifts * offset_scale
    for axis in (0, 1):
        grid = np.arange(kernel[axis]) * dilations[axis]
        anchor = (grid - dilations[axis] * (kernel[axis] - 1) // 2) * (offset_scale - 1)
        moved[:, :, :, axis] += anchor.reshape((1, -1, 1, 1, 1) if axis == 0 else (1, 1, -1, 1, 1))
    return {
        "x": x.transpose(2, 0, 1),
        "w": np.ones((x.shape[2], 1, *kernel)),
        "offset": moved.reshape(-1, *out),
        "mask": weights.reshape(-1, *out),
    }
