# amaranth: UnusedElaboratable=no
"""The sum of two int8 in gates, on all pairs next to a tie, against the golden model's float32."""

import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.rescaled_sum import FACTOR_BITS, RESCALED_SUM_LATENCY, rescaled_sum
from hw.lib.arithmetic.sum_exceptions import SumExceptions, exception_fields
from hw.network.graph.network import Sum
from hw.network.graph.sums import sum_rule
from sim.golden.network import result
from tests.support.gateware.play import play
from tests.support.networks.pairs import EXCEPTIONAL, Scales, pairs_next_to_ties

#: Exact ties beside an odd zero point.
TIES = Scales(scales=(0.7, 0.7, 1.4), zeros=(-4, 9, 3))
CASES = [given for _, given in EXCEPTIONAL if given.scales[2] > 1] + [TIES]


class RescaledSum(wiring.Component):
    """The function between ports."""

    def __init__(self):
        pair = data.ArrayLayout(signed(8), 2)
        super().__init__(
            {
                "operands": In(pair),
                "zeros": In(pair),
                "factors": In(data.ArrayLayout(FACTOR_BITS, 2)),
                "exceptions": In(SumExceptions()),
                "zero": In(signed(8)),
                "o": Out(signed(8)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        found = rescaled_sum(
            m,
            platform,
            "sum",
            operands=(self.operands[0], self.operands[1]),
            zeros=(self.zeros[0], self.zeros[1]),
            factors=(self.factors[0], self.factors[1]),
            exceptions=self.exceptions,
            zero=self.zero,
            low=-128,
            high=127,
        )
        m.d.comb += self.o.eq(found)
        return m


@pytest.mark.parametrize("given", CASES)
def test_equals_float32(given):
    values = given.values
    rule = sum_rule(*values)
    assert rule.unequal == 0
    pairs = pairs_next_to_ties(rule, given, 900)
    unit = RescaledSum()
    stays = [
        (unit.zeros, list(given.zeros[:2])),
        (unit.factors, [rule.first, rule.second]),
        (unit.exceptions, exception_fields(rule.exceptions)),
        (unit.zero, given.zeros[2]),
    ]
    inputs = [[(unit.operands, [int(a), int(b)])] for a, b in pairs]
    found = play(unit, inputs, unit.o, RESCALED_SUM_LATENCY, before=[stays, [], [], []])
    operator = Sum(name="sum", inputs=("v0", "v1"), output="v2")
    stored = [np.array(side, np.int8).reshape(1, 1, -1) for side in zip(*pairs, strict=True)]
    wanted = result(operator, stored, {value.name: value for value in values})
    assert found == wanted.ravel().tolist()
