"""Quantization: reals to the engine's integers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hw.conv.driver.formats import (
    channel_scales,
    check_weights,
    quantized_bias,
    quantized_map,
    quantized_mask,
    quantized_offsets,
    quantized_weights,
)
from hw.errors import InputError


@pytest.mark.parametrize(("low", "high"), [(-3.0, 5.0), (0.5, 2.0), (-7.0, -1.0), (0.0, 0.0)])
def test_maps_are_within_half_a_step_and_zero_is_exact(low, high):
    x = np.random.default_rng(1).uniform(low, high, (3, 8, 8))
    q, scale, zero = quantized_map(x)
    assert q.dtype == np.int8
    assert np.abs((q - float(zero)) * scale - x).max() <= scale * 1.001
    assert -128 <= zero <= 127
    assert (quantized_map(np.append(x.reshape(-1), 0.0))[0][-1] - zero) == 0


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_are_symmetric_and_within_half_a_step(bits):
    w = np.random.default_rng(2).normal(size=(5, 3, 3, 3))
    w[2] = 0
    q, scales = quantized_weights(w, bits)
    assert (
        np.abs(q).reshape(5, -1).max(axis=1).tolist()
        == [2 ** (bits - 1) - 1] * 2 + [0] + [2 ** (bits - 1) - 1] * 2
    )
    assert (np.abs(q * scales.reshape(-1, 1, 1, 1) - w) <= scales.reshape(-1, 1, 1, 1) / 2 + 1e-12).all()
    check_weights(q, bits)


@pytest.mark.parametrize(("worst", "bits"), [(-8, 4), (8, 4)])
def test_four_bits_are_a_narrow_range(worst, bits):
    check_weights(np.array([worst], np.int8), 8)
    with pytest.raises(InputError, match=f"w must be from -7 to 7 with weights of 4 bits, not {worst}"):
        check_weights(np.array([0, worst], np.int8), bits)


@pytest.mark.parametrize("bits", range(9))
def test_offsets_are_rounded_half_up(bits):
    values = np.array([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1 / 3, 2.5, -2.5]) * 2.0**-bits
    found = quantized_offsets(values, bits)
    assert found.tolist() == [math.floor(Fraction(v) * 2**bits + Fraction(1, 2)) for v in values.tolist()]


def test_offsets_are_clamped_to_the_bound():
    assert quantized_offsets(np.array([-9.0, 9.0, 2.75, np.inf]), 3, 7).tolist() == [-56, 56, 22, 56]


@pytest.mark.parametrize(
    ("value", "bits", "bound", "message"),
    [
        (math.nan, 5, None, "offset must be a number, not nan"),
        (math.nan, 5, 7, "offset must be a number, not nan"),
        (math.inf, 5, None, "offset must be from -1024.0 to 1023.96875, not inf"),
        (-1025.0, 5, None, "offset must be from -1024.0"),
        (0.0, 8, 128, "bound must be at most 127, not 128"),
    ],
)
def test_offsets_that_are_no_offsets_are_refused(value, bits, bound, message):
    with pytest.raises(InputError, match=message):
        quantized_offsets(np.array([0.0, value]), bits, bound)


def test_masks_are_in_units_of_a_256th():
    assert quantized_mask(np.array([0, 0.5, 1 / 512, 0.25, 1])).tolist() == [0, 128, 1, 64, 255]
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="mask must be"):
            quantized_mask(np.array([wrong]))


@pytest.mark.parametrize("quantize", [quantized_map, quantized_weights])
def test_values_must_be_finite(quantize):
    with pytest.raises(InputError, match="must be finite, not nan"):
        quantize(np.array([[1.0, math.nan]]))


def test_biases_are_in_units_of_the_sums():
    assert quantized_bias(np.array([1.0, -2.6]), np.array([0.5, 1.0])).tolist() == [2, -3]
    with pytest.raises(InputError, match=r"bias must be below 2\^47 units of the sums"):
        quantized_bias(np.array([1.0]), 2.0**-47)


def test_scales_are_nearest():
    factors = np.array([1.0, 0.3, 1e-6, 65535.0, 2.0**-48, 0.99999999])
    multipliers, shifts = channel_scales(factors)
    assert (multipliers < 2**16).all()
    assert (np.abs(multipliers * 2.0**-shifts / factors - 1) <= 2**-16).all()
    for wrong in (0.0, 2.0**-49, 65536.0, -1.0):
        with pytest.raises(InputError, match="scale of a channel must be from"):
            channel_scales(np.array([1.0, wrong]))
