# amaranth: UnusedElaboratable=no
"""Counting steps: a pass over a row's lanes, restarted at any legal time."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.steps import count_steps
from tests.support.gateware.play import play
from tests.support.gateware.streams import seeds


class Steps(wiring.Component):
    def __init__(self, most):
        step = range(most)
        super().__init__(
            {
                "start": In(1),
                "last": In(step),
                "control": Out(data.StructLayout({"valid": 1, "step": step})),
                "ends": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.ends.eq(count_steps(m, "pass", self.start, self.last, self.control))
        return m


@pytest.mark.parametrize("most", [1, 2, 5, 16])
@pytest.mark.parametrize("seed", seeds(2, 8))
def test_against_a_list(most, seed):
    """Passes of any length, back to back or with pauses; the next start may come with the last step."""
    rng = random.Random(seed)
    unit = Steps(most)
    cycles, expected = [[(unit.start, 0)]], [None]
    for _ in range(12):
        last = rng.randrange(most)
        cycles[-1] += [(unit.start, 1)]
        cycles += [[(unit.start, 0), (unit.last, last)] for _ in range(last + 1)]
        expected += range(last + 1)
        for _ in range(rng.choice([0, 0, 1, 3])):
            cycles.append([(unit.start, 0)])
            expected.append(None)
    got = play(unit, cycles, [unit.control, unit.ends], 0)
    ends = [
        0,
        *(
            int(now is not None and (after in (None, 0)))
            for now, after in zip(expected[1:], [*expected[2:], None], strict=True)
        ),
    ]
    assert [step["step"] if step["valid"] else None for step, _ in got] == expected
    assert [end for _, end in got] == ends
