"""Three products of one multiplier: extreme weights and elements."""

import itertools
import random

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.conv.core.pointwise.triple import triple_factor, triple_latency, triple_products
from tests.support.gateware.play import play


class Dots(wiring.Component):
    def __init__(self, vectors, elements):
        self.vectors = vectors
        super().__init__(
            {
                "weights": In(signed(4)).array(vectors, elements),
                "x": In(signed(8)).array(elements),
                "o": Out(signed(16)).array(vectors),
            }
        )

    def elaborate(self, platform):
        m = Module()
        factors = [triple_factor(column) for column in zip(*self.weights, strict=True)]
        sums = triple_products(m, factors, list(self.x), vectors=self.vectors, bits=16)
        m.d.comb += [o.eq(value) for o, value in zip(self.o, sums, strict=True)]
        return m


@pytest.mark.parametrize("vectors", [1, 2, 3])
def test_extremes(vectors):
    unit, weights = Dots(vectors, 2), itertools.product((-7, -1, 0, 7), repeat=2 * vectors)
    cases = list(itertools.product(weights, ((-128, 127), (-128, -128), (1, -1))))
    cases = random.Random(vectors).sample(cases, min(len(cases), 2000))
    inputs = []
    for flat, x in cases:
        rows = [flat[2 * n : 2 * n + 2] for n in range(vectors)]
        given = [(unit.weights[n][i], rows[n][i]) for n in range(vectors) for i in range(2)]
        inputs.append(given + [(unit.x[i], x[i]) for i in range(2)])
    expected = [
        [sum(w * value for w, value in zip(flat[2 * n : 2 * n + 2], x, strict=True)) for n in range(vectors)]
        for flat, x in cases
    ]
    assert play(unit, inputs, list(unit.o), triple_latency(2)) == expected
