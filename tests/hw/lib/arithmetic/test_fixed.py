# amaranth: UnusedElaboratable=no
"""Fixed point in gates and in NumPy agree: every value of small widths, random and edge values of wide."""

from __future__ import annotations

import random

import numpy as np
import pytest
from amaranth.hdl import Module, Shape, Signal, Value, signed, unsigned

from hw.errors import InputError
from hw.lib.arithmetic import fixed
from tests.support.gateware import fixed as golden
from tests.support.gateware.streams import seeds, simulate

DIVISIONS = ("round_half_up", "round_half_even", "floor_shift")
SMALL = [unsigned(1), unsigned(5), signed(1), signed(2), signed(6)]
WIDE = [unsigned(40), signed(33), signed(62)]


def domain(shape):
    low = -(1 << (shape.width - 1)) if shape.signed else 0
    return range(low, low + (1 << shape.width))


def samples(shape, rng, count=60):
    """Edges of the range, neighbours of powers of two and of their halves, and random values."""
    values = domain(shape)
    marks = [values[0], values[-1], 0]
    for bit in range(shape.width):
        marks += [sign * (1 << bit) + offset for sign in (1, -1) for offset in (-1, 0, 1)]
    marks += [
        rng.choice(values) if shape.width < 40 else rng.randrange(values[0], values[-1]) for _ in range(count)
    ]
    return sorted({value for value in marks if values[0] <= value <= values[-1]})


def evaluate(shape, expression, values, *, shift_shape=None, shifts=(0,)):
    """Return ``expression(x)`` or ``expression(x, shift)`` for all pairs, and the shape it came in."""
    x = Signal(shape)
    shift = Signal(shift_shape or 1)
    m = Module()
    if expression is fixed.leading_zeros:
        result = expression(m, x)
    else:
        result = expression(x, shift) if shift_shape else expression(x)
    out = Signal(result.shape())
    m.d.comb += out.eq(result)
    m.d.sync += Signal(name="unused").eq(0)
    found = []

    async def sweep(ctx):
        for amount in shifts:
            ctx.set(shift, amount)
            for value in values:
                ctx.set(x, value)
                found.append(ctx.get(out))

    simulate(m, sweep)
    return np.array(found), result.shape()


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("shape", SMALL, ids=repr)
@pytest.mark.parametrize("shift", [0, 1, 2, 4, 6, 9])
def test_constant_shift_of_every_value(shape, shift, name):
    values = domain(shape)
    found, result = evaluate(shape, lambda x: getattr(fixed, name)(x, shift), values)
    np.testing.assert_array_equal(found, getattr(golden, name)(list(values), shift))
    kept = shape.width - shift + (name != "floor_shift")
    assert result == Shape(max(kept, 1), shape.signed)


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("shape", SMALL, ids=repr)
def test_variable_shift_of_every_value(shape, name):
    values, shifts = list(domain(shape)), range(16)
    found, result = evaluate(shape, getattr(fixed, name), values, shift_shape=4, shifts=shifts)
    expected = np.concatenate([getattr(golden, name)(values, amount) for amount in shifts])
    np.testing.assert_array_equal(found, expected)
    assert result == Shape(shape.width + (name != "floor_shift"), shape.signed)


@pytest.mark.parametrize("seed", seeds(1, 8))
@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("shape", WIDE, ids=repr)
def test_wide_values(shape, name, seed):
    rng = random.Random(seed)
    values = samples(shape, rng)
    for shift in (1, rng.randrange(2, shape.width), shape.width - 1):
        found, _ = evaluate(shape, lambda x, shift=shift: getattr(fixed, name)(x, shift), values)
        np.testing.assert_array_equal(found, getattr(golden, name)(values, shift))
    shifts = [rng.randrange(62) for _ in range(3)]
    found, _ = evaluate(shape, getattr(fixed, name), values, shift_shape=6, shifts=shifts)
    expected = np.concatenate([getattr(golden, name)(values, amount) for amount in shifts])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "target", [unsigned(1), unsigned(4), unsigned(9), signed(1), signed(4), signed(9)], ids=repr
)
@pytest.mark.parametrize("shape", [*SMALL, signed(33)], ids=repr)
def test_saturation(shape, target):
    values = samples(shape, random.Random(1))
    found, result = evaluate(shape, lambda x: fixed.saturate(x, target), values)
    np.testing.assert_array_equal(found, golden.saturate(values, target.width, signed=target.signed))
    assert result == target


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 9, 33])
def test_leading_zeros(width):
    values = samples(unsigned(width), random.Random(2))
    found, result = evaluate(unsigned(width), fixed.leading_zeros, values)
    np.testing.assert_array_equal(found, golden.leading_zeros(values, width))
    np.testing.assert_array_equal(found, [width - value.bit_length() for value in values])
    assert result == unsigned(width.bit_length())


def test_leading_zeros_of_a_signed_value_looks_at_its_bits():
    found, _ = evaluate(signed(4), fixed.leading_zeros, [-1, 0, 1, 7])
    assert found.tolist() == [0, 4, 3, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: fixed.round_half_up(x, -1), "^shift must be at least 0, not -1$"),
        (lambda x: fixed.floor_shift(x, Signal(7)), "^shift must be unsigned and at most 6 bits wide, not "),
        (lambda x: fixed.round_half_even(x, Signal(signed(3))), "^shift must be unsigned and at most 6 bits"),
        (lambda x: fixed.saturate(x, unsigned(0)), "^shape must be at least one bit wide, not "),
        (lambda x: fixed.leading_zeros(Module(), x[:0]), "^value must be at least one bit wide, not "),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(Value.cast(Signal(8)))
