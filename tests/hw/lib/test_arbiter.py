# amaranth: UnusedElaboratable=no
"""The arbiter: everything arrives, in order per input, packets whole, turns fair."""

from __future__ import annotations

import random

import pytest
from amaranth.lib import data

from hw.errors import InputError
from hw.lib.arbiter import Arbiter
from tests.support.gateware.streams import STALLS, Side, exchange, grid, seeds

PACKET = data.StructLayout({"value": 8, "last": 1})


def run(per_input, *, shape=16, packets=False, stall_i=0.0, stall_o=0.0, seed=0):
    """Send one list a input and give the output side; ``source`` is checked by what the items say."""
    dut = Arbiter(shape, inputs=len(per_input), packets=packets)
    sides = {f"i{n}": Side(dut.i[n], items=items, stall=stall_i) for n, items in enumerate(per_input)}
    out = sides["o"] = Side(dut.o, count=sum(map(len, per_input)), stall=stall_o)
    sources = []

    async def watch(ctx):
        while True:
            _, _, valid, ready, source = await ctx.tick().sample(dut.o.valid, dut.o.ready, dut.source)
            if valid and ready:
                sources.append(source)

    exchange(dut, sides, seed=seed, background=[watch])
    return out, sources


@pytest.mark.sample(3)
@pytest.mark.parametrize(("inputs", "stall_i", "stall_o", "seed"), grid([1, 2, 3, 5], STALLS, STALLS))
def test_each_input_arrives_whole_and_in_order(inputs, stall_i, stall_o, seed):
    per_input = [[index << 8 | n for n in range(12)] for index in range(inputs)]
    out, sources = run(per_input, stall_i=stall_i, stall_o=stall_o, seed=seed)
    for index, items in enumerate(per_input):
        assert [item for item in out.received if item >> 8 == index] == items
    assert len(sources) >= len(out.received) - 1  # the last one may fall into the closing cycle
    assert [item >> 8 for item in out.received][: len(sources)] == sources


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("stall_i", STALLS)
@pytest.mark.parametrize("stall_o", STALLS)
def test_packets_stay_whole(stall_i, stall_o, seed):
    rng = random.Random(seed)
    per_input = []
    for index in range(3):
        lengths = [rng.randrange(1, 5) for _ in range(4)]
        per_input.append(
            [
                {"value": index << 4 | n, "last": int(n == length - 1)}
                for length in lengths
                for n in range(length)
            ]
        )
    out, _ = run(per_input, shape=PACKET, packets=True, stall_i=stall_i, stall_o=stall_o, seed=seed)
    owner = None
    for item in out.received:
        assert owner in (None, item["value"] >> 4)
        owner = None if item["last"] else item["value"] >> 4
    for index, items in enumerate(per_input):
        assert [item for item in out.received if item["value"] >> 4 == index] == items


@pytest.mark.parametrize("inputs", [1, 2, 3, 5])
def test_full_rate_and_strict_turns_when_all_ask(inputs):
    out, _ = run([[index << 8 | n for n in range(20)] for index in range(inputs)])
    assert out.gapless
    assert [item >> 8 for item in out.received] == [n % inputs for n in range(20 * inputs)]


def test_a_lone_input_gets_every_cycle():
    out, _ = run([[], [], list(range(30)), []])
    assert out.gapless


def test_packets_need_a_last():
    with pytest.raises(InputError, match=r"^shape must be a StructLayout with a field `last`"):
        Arbiter(8, inputs=2, packets=True)


@pytest.mark.parametrize("inputs", [0, -1, 2.0])
def test_impossible_inputs_are_refused(inputs):
    with pytest.raises(InputError, match=r"^inputs must be an integer of at least 1, not "):
        Arbiter(8, inputs=inputs)
