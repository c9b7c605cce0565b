# amaranth: UnusedElaboratable=no
"""Adder trees and dot products against Python's sums."""

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.arithmetic.adder_tree import adder_tree, tree_levels
from hw.lib.arithmetic.dot_product import dot_latency, dot_products, factor, factor_bits
from tests.support.gateware.play import play

COUNTS = [1, 2, 4, 5, 16, 17, 48]


class Tree(wiring.Component):
    def __init__(self, count, bits, *, enabled=False):
        self.count, self.bits, self.enabled = count, bits, enabled
        enables = {"enables": In(max(1, tree_levels(count)))}
        super().__init__({"i": In(signed(8)).array(count), "o": Out(signed(bits)), **enables})

    def elaborate(self, platform):
        m = Module()
        values = [self.i[n] for n in range(self.count)]
        enables = [*self.enables][: tree_levels(self.count)] if self.enabled else None
        m.domains.sync = ClockDomain()  # a single value needs none
        m.d.comb += self.o.eq(adder_tree(m, "sum", values, self.bits, enables=enables))
        return m


@pytest.mark.parametrize("bits", [14, 9])
@pytest.mark.parametrize("count", COUNTS)
def test_tree_against_sums(count, bits):
    """A sum a cycle; with too few bits, modulo."""
    rng = np.random.default_rng(count)
    given = [np.full(count, -128), np.full(count, 127), *rng.integers(-128, 128, (30, count))]
    unit = Tree(count, bits)
    got = play(
        unit, [[(unit.i[n], int(v)) for n, v in enumerate(row)] for row in given], unit.o, tree_levels(count)
    )
    half = 1 << bits - 1
    assert got == [(int(row.sum()) + half) % (2 * half) - half for row in given]


@pytest.mark.parametrize("count", [2, 16, 17])
def test_enables_hold_a_level(count):
    """Each level moves when its own enable says so: the model has a list a level."""
    rng = np.random.default_rng(count)
    levels = tree_levels(count)
    unit = Tree(count, 16, enabled=True)
    held = [[0] * -(-count // 4 ** (n + 1)) for n in range(levels)]
    cycles, expected = [], []
    for _ in range(60):
        row, enables = rng.integers(-128, 128, count).tolist(), int(rng.integers(1 << levels))
        cycles.append([*((unit.i[n], v) for n, v in enumerate(row)), (unit.enables, enables)])
        expected.append(held[-1][0])
        before = [row, *held[:-1]]
        for n in range(levels):
            if enables >> n & 1:
                held[n] = [sum(before[n][at : at + 4]) for at in range(0, len(before[n]), 4)]
    assert play(unit, cycles, unit.o, 0) == expected


class Dot(wiring.Component):
    def __init__(self, count, vectors, bits):
        self.count, self.vectors, self.bits = count, vectors, bits
        super().__init__(
            {
                "i": In(signed(8)).array(vectors, count),
                "shared": In(signed(8)).array(count),
                "o": Out(signed(bits)).array(vectors),
            }
        )

    def elaborate(self, platform):
        m = Module()
        factors = []
        for n in range(self.count):
            one = Signal(signed(factor_bits(self.vectors)), name=f"factor_{n}")
            m.d.comb += one.eq(factor([self.i[v][n] for v in range(self.vectors)]))
            factors.append(one)
        shared = [self.shared[n] for n in range(self.count)]
        sums = dot_products(m, factors, shared, vectors=self.vectors, bits=self.bits)
        m.d.comb += [self.o[v].eq(value) for v, value in enumerate(sums)]
        return m


@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize("count", COUNTS)
def test_dot_products(count, vectors):
    """A dot product a cycle; the extremes of both signs for both vectors that share a multiplier."""
    rng = np.random.default_rng([count, vectors])
    bits = 16 + (count - 1).bit_length()
    shape = (40, vectors, count)
    given, shared = rng.integers(-128, 128, shape), rng.integers(-128, 128, (40, count))
    given[:4], shared[:4] = -128, -128
    given[1, 0], given[2, -1], shared[3] = 127, 127, 127
    unit = Dot(count, vectors, bits)
    cycles = [
        [(unit.i[v][n], int(a[v, n])) for v in range(vectors) for n in range(count)]
        + [(unit.shared[n], int(b[n])) for n in range(count)]
        for a, b in zip(given, shared, strict=True)
    ]
    got = play(unit, cycles, [unit.o[v] for v in range(vectors)], dot_latency(count))
    assert got == np.einsum("tvn,tn->tv", given, shared).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tree_levels(0), "^count must be at least 1, not 0$"),
        (
            lambda: adder_tree(Module(), "sum", [Signal(4)] * 5, 8, enables=[Signal()]),
            "^enables must be one for each of 2 levels, not ",
        ),
        (lambda: factor_bits(3), "^vectors must be 1 or 2, not 3$"),
        (lambda: dot_products(Module(), [], [], vectors=0, bits=8), "^vectors must be 1 or 2, not 0$"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
