"""DCNv3 from its own definition, point by point, against the mapping onto ONNX's deformable convolution."""

import math

import numpy as np
import pytest

from hw.errors import InputError
from sim.golden.conv.aggregation import aggregation
from sim.golden.conv.attributes import Attributes
from tests.support.conv.oracle import deform_conv


def dcnv3(x, offset, mask, *, kernel, strides, dilations, pads, group, offset_scale, remove_center):
    """2211.05778, equation 2, with InternImage's order of points: x first, on the padded map."""
    padded = np.pad(x, ((pads[0],) * 2, (pads[1],) * 2, (0, 0)))
    rows, columns, size = *mask.shape[:2], x.shape[2] // group
    middle = [dilations[axis] * (kernel[axis] - 1) // 2 for axis in (0, 1)]
    points = [(i, j) for j in range(kernel[1]) for i in range(kernel[0])]
    if remove_center:
        points.remove((kernel[0] // 2, kernel[1] // 2))
    out = np.zeros((rows, columns, x.shape[2]))
    for oy, ox, g in np.ndindex(rows, columns, group):
        for n, (i, j) in enumerate(points):
            dx, dy = offset[oy, ox, 2 * (g * len(points) + n) :][:2]
            y = middle[0] + oy * strides[0] + (i * dilations[0] - middle[0] + dy) * offset_scale
            at_x = middle[1] + ox * strides[1] + (j * dilations[1] - middle[1] + dx) * offset_scale
            own = slice(g * size, (g + 1) * size)
            value = bilinear(padded[:, :, own], y, at_x)
            out[oy, ox, own] += mask[oy, ox, g * len(points) + n] * value
    return out.transpose(2, 0, 1)


def bilinear(x, y, at_x):
    total = np.zeros(x.shape[2])
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(at_x), math.floor(at_x) + 1):
            if 0 <= row < x.shape[0] and 0 <= column < x.shape[1]:
                total += x[row, column] * (1 - abs(y - row)) * (1 - abs(at_x - column))
    return total


@pytest.mark.parametrize("remove_center", [False, True])
@pytest.mark.parametrize("kernel", [(3, 3), (3, 5)])
def test_mapping_is_dcnv3(kernel, remove_center):
    rng = np.random.default_rng(kernel[1])
    known = {"kernel": kernel, "dilations": (2, 1), "group": 2, "offset_scale": 1.5}
    known["remove_center"] = remove_center
    attributes = Attributes(strides=(1, 2), dilations=(2, 1), pads=(2, 1, 2, 1), group=6, offset_group=2)
    x = rng.normal(size=(7, 8, 6))
    out = attributes.output_size((7, 8), kernel)
    points = 2 * (kernel[0] * kernel[1] - remove_center)
    offset, mask = rng.normal(size=(*out, 2 * points)), rng.normal(size=(*out, points))
    exact = dcnv3(x, offset, mask, strides=(1, 2), pads=(2, 1), **known)
    onnx = aggregation(x, offset, mask, **known)
    found = deform_conv(onnx["x"], onnx["w"], onnx["offset"], onnx["mask"], attributes)
    np.testing.assert_allclose(found, exact, atol=1e-12)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"group": 4}, "group must be a divisor of 6 channels, not 4"),
        ({"group": 1}, r"mask must be of shape \(2, 2, 9\)"),
        ({"group": 2, "kernel": (2, 2), "remove_center": True}, "kernel must be odd"),
    ],
)
def test_misfits_are_refused(known, message):
    with pytest.raises(InputError, match=message):
        aggregation(np.zeros((4, 4, 6)), np.zeros((2, 2, 36)), np.zeros((2, 2, 18)), **known)
