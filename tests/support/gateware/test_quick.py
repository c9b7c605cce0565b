"""Quicker reads and assignments of signals equal Amaranth's own."""

import random

import pytest
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module, Mux, Shape, Signal, Value, signed
from amaranth.hdl._ir import DriverConflict
from amaranth.lib import data, enum
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator, pysim
from amaranth.sim._pyeval import eval_assign, eval_value

from tests.support.gateware.quick import quick_assign, quick_bits, quick_payload, quick_value


def target(rng, signals, depth=3):
    """Return something that can be assigned."""
    kind = rng.randrange(6) if depth else 0
    if kind == 2:
        return Cat(target(rng, signals, depth - 1) for _ in range(rng.randrange(4)))
    inner = rng.choice(signals) if kind in (0, 1) else target(rng, signals, depth - 1)
    if kind == 3:
        return inner.as_signed() if len(inner) and rng.random() < 0.5 else inner.as_unsigned()
    if kind == 4 and len(inner):
        return inner.bit_select(rng.choice(signals).as_unsigned(), rng.randrange(1, len(inner) + 1))
    first, last = sorted(rng.choices(range(len(inner) + 1), k=2))
    return inner if kind == 0 else inner[first:last]


def value(rng, signals, depth=3):
    """Return something that can be read."""
    kind = rng.randrange(4) if depth else 3
    if kind == 0:
        return Cat(value(rng, signals, depth - 1), Const(rng.randrange(9)), value(rng, signals, depth - 1))
    if kind == 1:
        return value(rng, signals, depth - 1) + ~value(rng, signals, depth - 1)
    if kind == 2:
        return Mux(rng.choice(signals), value(rng, signals, depth - 1), -rng.choice(signals))
    return target(rng, signals)


@pytest.mark.parametrize("seed", range(20))
def test_values_and_assignments(seed):
    rng = random.Random(seed)
    signals = [
        Signal(signed(width) if rng.random() < 0.5 else width, name=f"s{width}") for width in range(1, 9)
    ]
    theirs, ours = pysim._PyEngineState(), pysim._PyEngineState()
    for _ in range(30):
        place, read = target(rng, signals), value(rng, signals)
        for _ in range(3):  # later rounds use the cache of the first
            bits = rng.getrandbits(80) - (1 << 79)
            eval_assign(theirs, place, bits)
            quick_assign(ours, place, bits)
            theirs.commit()
            ours.commit()
            expected = [eval_value(theirs, what) for what in (*signals, place, read)]
            assert [quick_value(ours, what) for what in (*signals, place, read)] == expected


def test_simulations_number_their_signals_apart():
    first, second = pysim._PyEngineState(), pysim._PyEngineState()
    signals = [Signal(name=f"s{n}") for n in range(3)]
    for _ in range(2):
        assert [first.get_signal(signal) for signal in signals] == [0, 1, 2]
        assert [second.get_signal(signal) for signal in reversed(signals)] == [0, 1, 2]


def test_widths_and_classes_of_values():
    signal = Signal(signed(5))
    parts = [
        (signal, 5),
        (signal[1:4], 3),
        (signal[2], 1),
        (signal[4:4], 0),
        (signal + 1, 6),
        (Cat(signal, signal), 10),
    ]
    for part, width in parts:
        assert isinstance(part, Value)
        assert [len(part), part.shape().width, part.shape().width] == [width] * 3
    assert (signal.shape().signed, signal[1:].shape().signed) == (True, False)
    assert not any(isinstance(other, Value) for other in (3, "x", None, Signal, Shape(3)))


def test_what_gates_drive_is_not_assigned():
    m = Module()
    driven = Signal(4)
    m.d.comb += driven.eq(3)

    async def testbench(ctx):
        ctx.set(Cat(Signal(2), driven), 1)

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    with pytest.raises(DriverConflict):
        simulator.run()


def test_processes_run_when_what_they_read_changes():
    """Registers of both edges, a memory that is read without a clock, and all again after a reset."""
    m, falling = Module(), ClockDomain("falling", clk_edge="neg", reset_less=True)
    m.domains += falling
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[])
    count, late, read, write = Signal(4), Signal(4), memory.read_port(domain="comb"), memory.write_port()
    m.d.sync += count.eq(count + 1)
    m.d.falling += late.eq(count)
    m.d.comb += falling.clk.eq(ClockSignal())
    m.d.comb += [read.addr.eq(count), write.addr.eq(count), write.data.eq(Cat(count, late)), write.en.eq(1)]
    seen, words, expected = [], [0] * 4, []

    async def testbench(ctx):
        for _ in range(12):
            seen.append(tuple(ctx.get(signal) for signal in (count, late, read.data)))
            await ctx.tick()

    for n in range(12):
        expected.append((n, max(0, n - 1), words[n % 4]))
        words[n % 4] = n << 4 | n
    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == expected
    simulator.reset()
    simulator.run()
    assert seen == expected * 2


class Kind(enum.Enum, shape=2):
    """A shape with values of its own."""

    FIRST = 0
    LAST = 3


class Pair(data.Struct):
    """A layout that is a class."""

    kind: Kind
    number: signed(5)


def shape(rng, depth=2):
    """Return a shape and a payload of it, as plain Python."""
    kind = rng.randrange(5) if depth else rng.randrange(2)
    if kind == 0:
        width = rng.randrange(1, 9)
        return signed(width), rng.randrange(-(1 << width - 1), 1 << width - 1)
    if kind == 1:
        return Shape(4), rng.randrange(16)
    if kind == 2:
        return Pair, {"kind": rng.choice(list(Kind)), "number": rng.randrange(-16, 16)}
    if kind == 3:
        fields = {name: shape(rng, depth - 1) for name in "abc"[: rng.randrange(1, 4)]}
        return data.StructLayout({name: inner for name, (inner, _) in fields.items()}), {
            name: payload for name, (_, payload) in fields.items()
        }
    inner, payload = shape(rng, depth - 1)
    return data.ArrayLayout(inner, 3), [payload, payload, payload]


@pytest.mark.parametrize("seed", range(40))
def test_payloads(seed):
    rng = random.Random(seed)
    layout, payload = shape(rng)
    width = Shape.cast(layout).width
    const = Const(payload, layout)
    bits = Const.cast(const).value & (1 << width) - 1
    assert quick_bits(layout, payload) == bits
    assert quick_payload(layout, bits) == payload
    with pytest.raises((KeyError, ValueError, TypeError)):
        quick_bits(data.StructLayout({"a": layout}), {"b": payload})
