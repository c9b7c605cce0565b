"""The scale against the formula, for random and extreme sums and parameters that change every cycle."""

import random

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.conv.core.scale import BOUNDS_AT, POST_AT, RAW_AT, SCALE_LATENCY, SHIFT_AT, scale
from tests.support.gateware.play import play

FIELDS = {"multiplier": 16, "shift": 6, "raw": 1, "post": signed(16), "low": signed(8), "high": signed(8)}
AT = {"shift": SHIFT_AT, "raw": RAW_AT, "post": POST_AT, "low": BOUNDS_AT, "high": BOUNDS_AT}


class Scaled(wiring.Component):
    def __init__(self, bits):
        super().__init__(
            {"value": In(signed(bits)), **{n: In(s) for n, s in FIELDS.items()}, "o": Out(signed(8))}
        )

    def elaborate(self, platform):
        m = Module()
        held = {name: Signal.like(getattr(self, name)) for name in ("value", *FIELDS)}
        m.d.sync += [register.eq(getattr(self, name)) for name, register in held.items()]
        m.d.comb += self.o.eq(scale(m, "scaled", held.pop("value"), held.pop("multiplier"), **held))
        return m


def expected(value, multiplier, shift, raw, post, low, high):
    if raw:
        byte = ((value * multiplier >> shift) + post) & 0xFF
        return byte - 256 * (byte >= 128)
    return min(max((((value * multiplier + (1 << shift >> 1)) >> shift) + post), low), high)


def case(rng, bits):
    most = (1 << (bits - 1)) - 1
    value = rng.choice([0, most, -most - 1, rng.randint(-most - 1, most), rng.randint(-300, 300)])
    value = rng.choice([value, value >> rng.randrange(bits)])
    multiplier = rng.choice([0, 1, 0xFFFF, rng.randrange(1 << 16)])
    # Half of all shifts produce a result of about 8 bits.
    fitting = max(0, (value * multiplier).bit_length() - rng.randrange(5, 19))
    shift = min(63, rng.choice([rng.randrange(64), fitting]))
    post = rng.choice([0, -(1 << 15), (1 << 15) - 1, rng.randint(-200, 200)])
    low = rng.choice([-128, 0, rng.randint(-128, 127)])
    return value, multiplier, shift, rng.random() < 0.2, post, low, rng.randint(low, 127)


@pytest.mark.parametrize("bits", [16, 27, 30, 48])
def test_scale(bits):
    rng = random.Random(bits)
    unit = Scaled(bits)
    cases = [case(rng, bits) for _ in range(1500)]
    inputs = [[] for _ in range(len(cases) + SCALE_LATENCY)]
    for n, values in enumerate(cases):
        for name, value in zip(("value", *FIELDS), values, strict=True):
            inputs[n + AT.get(name, 0)].append((getattr(unit, name), value))
    found = play(unit, inputs, unit.o, SCALE_LATENCY + 1)
    wanted = [expected(*values) for values in cases]
    assert found[: len(cases)] == wanted
    assert len({*wanted}) > 150
