"""Compiled gates compute the same values as Amaranth's evaluator of expressions."""

import operator
import random

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Shape, Signal, signed
from amaranth.sim import Simulator, pysim
from amaranth.sim._pyeval import eval_assign, eval_value

from tests.support.gateware.streams import seeds
from tests.support.gateware.test_quick import target

BINARY = ["add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "eq", "ne", "lt", "le", "gt", "ge"]
UNARY = (
    *(operator.invert, operator.neg),
    *(
        lambda value: value.any(),
        lambda value: value.all(),
        lambda value: value.xor(),
        lambda value: value.bool(),
    ),
    *(lambda value: value.as_signed() if len(value) else value, lambda value: value.as_unsigned()),
)


def shape(rng):
    width = rng.randrange(1, 9)
    return signed(width) if rng.random() < 0.5 else Shape(width)


def value(rng, signals, depth=4):
    """Return an expression with any operator.

    Amaranth's evaluator and compiler differ in a part that begins beyond a value's end; none does.
    """
    kind = rng.randrange(8) if depth else 7

    def inner():
        return value(rng, signals, depth - 1)

    if kind == 0:
        return getattr(operator, rng.choice(BINARY))(inner(), inner())
    if kind == 1:
        return rng.choice(UNARY)(inner())
    if kind == 2:
        by = rng.choice(signals)[:3].as_unsigned()
        return (inner() << by)[:12] if rng.random() < 0.5 else inner() >> by
    if kind == 3:
        return Cat(inner(), Const(rng.randrange(9)), inner())
    if kind == 4:
        return Mux(inner().bool(), inner(), inner())
    if kind == 5:
        return Array([inner(), inner(), inner()])[signals[0][:2]] + 0
    if kind == 6:
        if rng.random() < 0.5:
            return rng.choice(signals).word_select(signals[0][:1], 1)
        whole = inner()
        first, last = sorted(rng.choices(range(len(whole) + 1), k=2))
        return whole[first:last]
    return rng.choice(signals) if rng.random() < 0.8 else Const(rng.randrange(-9, 9))


@pytest.mark.parametrize("seed", seeds(3, 12))
def test_expressions_and_assignments(seed):
    rng = random.Random(seed)
    inputs = [Signal(3, name="i"), *(Signal(shape(rng), name=f"i{n}") for n in range(5))]
    outputs = [(Signal(shape(rng), name=f"o{n}"), value(rng, inputs)) for n in range(20)]
    whole = [
        (Signal(expression.shape(), name="w"), expression) for _, expression in outputs if len(expression)
    ]
    registers = [Signal(shape(rng), name=f"r{n}", reset_less=True) for n in range(6)]
    places = [place for place in (target(rng, registers) for _ in range(20)) if "part" not in repr(place)]
    writes = [(place, value(rng, inputs)) for place in places if len(place)]
    m = Module()
    m.d.comb += [signal.eq(expression) for signal, expression in (*outputs, *whole)]
    with m.Switch(inputs[0]):
        with m.Case(0, 1):
            m.d.sync += [place.eq(expression) for place, expression in writes]
        with m.Case(*("-" * (len(inputs[0]) - 1) + "1",)):
            m.d.sync += registers[0].eq(inputs[1])
    reference = pysim._PyEngineState()

    async def bench(ctx):
        for _ in range(25):
            for signal in inputs:
                bits = rng.choice([0, -1, rng.getrandbits(9)])
                ctx.set(signal, bits)
                eval_assign(reference, signal, bits)
            reference.commit()
            for signal, expression in (*outputs, *whole):
                eval_assign(reference, signal, eval_value(reference, expression))
            reference.commit()
            for signal, expression in (*outputs, *whole):
                assert ctx.get(signal) == eval_value(reference, signal), expression
                assert type(ctx.get(signal)) is int
            first = eval_value(reference, inputs[0].as_unsigned())
            if first in (0, 1):
                values = [eval_value(reference, expression) for _, expression in writes]
                for (place, _), bits in zip(writes, values, strict=True):
                    eval_assign(reference, place, bits)
            elif first & 1:
                eval_assign(reference, registers[0], eval_value(reference, inputs[1]))
            reference.commit()
            await ctx.tick()
            assert [ctx.get(signal) for signal in registers] == [eval_value(reference, s) for s in registers]

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
