"""The sums of the golden model are those of onnxruntime, to the bit."""

import time

import numpy as np
import pytest

from hw.errors import InputError
from sim.golden.conv.attributes import Attributes
from sim.golden.conv.model import Deformation, accumulators
from tests.support.conv.draw import draw
from tests.support.conv.oracle import conv_integer, deform_conv

SEEDS = [*range(25), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(25, 225))]


@pytest.mark.parametrize("seed", SEEDS)
def test_deformable_is_that_of_onnxruntime(seed):
    drawn = draw(seed, deformable=True)
    given = drawn.deformation
    mask = None if given.mask is None else given.mask / 256
    x = drawn.x.astype(np.float64) - drawn.zero
    exact = deform_conv(x, drawn.w, drawn.offset / 2**given.fraction_bits, mask, drawn.attributes)
    scale = 4**given.fraction_bits * (1 if mask is None else 256)
    assert np.abs(exact * scale).max() < 2**53
    found = accumulators(drawn.x, drawn.w, drawn.attributes, given, zero=drawn.zero)
    np.testing.assert_array_equal(found, exact * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_is_that_of_onnxruntime(seed):
    drawn = draw(seed, deformable=False)
    exact = conv_integer(drawn.x, drawn.w, drawn.zero, drawn.attributes)
    bias = np.arange(len(drawn.w)) - 1000
    found = accumulators(drawn.x, drawn.w, drawn.attributes, zero=drawn.zero, bias=bias)
    np.testing.assert_array_equal(found, exact.astype(np.int64) + bias[:, None, None])


def test_draws_have_every_kind():
    """The seeds of `make test` cover every kind."""
    seen = [draw(seed, deformable=True) for seed in range(25)]
    forms = [drawn.deformation for drawn in seen]
    assert {form.fraction_bits for form in forms} >= {0, 5, 8}
    assert {form.square for form in forms} == {form.mask is None for form in forms} == {True, False}
    assert {form.bound is None for form in forms} == {True, False}
    assert {drawn.attributes.offset_group > 1 for drawn in seen} == {True, False}
    assert {drawn.attributes.group > 1 for drawn in seen} == {True, False}
    assert any(drawn.zero for drawn in seen)


def test_sums_beyond_32_bits_are_exact():
    x = np.full((1, 3, 3), -128, np.int8)
    w = np.full((1, 1, 3, 3), -128, np.int8)
    offset, mask = np.zeros((18, 1, 1), np.int16), np.full((9, 1, 1), 255, np.uint8)
    found = accumulators(x, w, deformation=Deformation(offset=offset, mask=mask, fraction_bits=8), zero=127)
    assert found.item() == 9 * 255 * 128 * 255 * 4**8


@pytest.mark.parametrize("group", [1, 256])
def test_the_papers_layer_takes_seconds(group):
    rng = np.random.default_rng(group)
    x = rng.integers(-128, 128, (256, 64, 64)).astype(np.int8)
    w = rng.integers(-128, 128, (256, 256 // group, 3, 3)).astype(np.int8)
    offset = rng.integers(-200, 200, (18, 64, 64)).astype(np.int16)
    attributes = Attributes(pads=(1, 1, 1, 1), group=group)
    start = time.process_time()
    found = accumulators(x, w, attributes, Deformation(offset=offset, fraction_bits=5))
    assert found.shape == (256, 64, 64)
    assert time.process_time() - start < 20


X, W = np.zeros((4, 5, 5), np.int8), np.zeros((4, 4, 3, 3), np.int8)
OFFSET = np.zeros((18, 3, 3), np.int16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0], W), r"x must be int8 \[C, H, W\], not 'int8 \(5, 5\)'"),
        ((X.astype(np.int16), W), r"x must be int8 \[C, H, W\], not 'int16 \(4, 5, 5\)'"),
        ((X, W[0]), r"w must be int8"),
        ((X, W, Attributes(group=3)), "group must be a divisor of 4 inputs and of 4 outputs, not 3"),
        ((X, W, Attributes(offset_group=3)), "offset_group must be a divisor of 4 inputs, not 3"),
        ((X, W, Attributes(group=2)), "w must be of 2 channels"),
        ((X, np.zeros((4, 4, 7, 7), np.int8)), "kernel must be no larger than the padded map"),
        ((X, W, Attributes(), Deformation(offset=OFFSET[:4])), r"offset must be of shape \(18, 3, 3\)"),
        (
            (X, W, Attributes(), Deformation(offset=OFFSET, mask=np.zeros((9, 3, 2), np.uint8))),
            r"mask must be of shape \(9, 3, 3\)",
        ),
        (
            (X, W[..., :2], Attributes(), Deformation(offset=np.zeros((3, 4), np.int16), square=True)),
            "kernel must be odd",
        ),
    ],
)
def test_misfits_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        accumulators(*arguments)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"strides": (0, 1)}, "strides must be 2 whole numbers of at least 1"),
        ({"pads": (1, 1)}, "pads must be 4 whole numbers of at least 0"),
        ({"dilations": (1, 1.5)}, "dilations must be"),
        ({"group": 0}, "group must be"),
    ],
)
def test_attributes_are_checked(known, message):
    with pytest.raises(InputError, match=message):
        Attributes(**known)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"offset": OFFSET.astype(float)}, "offset must be signed integers"),
        ({"offset": OFFSET, "mask": np.zeros((9, 3, 3))}, "mask must be of type uint8"),
        ({"offset": OFFSET, "fraction_bits": 9}, "fraction_bits must be from 0 to 8"),
        ({"offset": OFFSET, "bound": -1}, "bound must be at least 0"),
    ],
)
def test_deformations_are_checked(known, message):
    with pytest.raises(InputError, match=message):
        Deformation(**known)
