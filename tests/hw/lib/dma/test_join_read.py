# amaranth: UnusedElaboratable=no
"""Readers behind one port: each gets its own bytes in order, and the port never rests while one has work."""

import random
from itertools import pairwise

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.errors import InputError
from hw.lib.dma.join_read import ReadJoin
from hw.lib.dma.read import ReadDMA
from tests.hw.lib.dma.test_read import expected_words, received_words, some_commands
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, Side, exchange, grid


class Joined(wiring.Component):
    """Read DMAs and their join."""

    def __init__(self, *, inputs, width, bursts):
        self.dmas = [ReadDMA(data_width=width, fifo_beats=64, commands=8) for _ in range(inputs)]
        self.join = ReadJoin(inputs=inputs, data_width=width, bursts=bursts)
        first = self.dmas[0]
        super().__init__(
            {
                "command": In(first.command.signature.flip()).array(inputs),
                "o": Out(first.o.signature).array(inputs),
                "axi": Out(first.axi.signature),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.join = self.join
        connect(m, self.join.o, flipped(self.axi))
        for n, dma in enumerate(self.dmas):
            m.submodules[f"dma_{n}"] = dma
            connect(m, flipped(self.command[n]), dma.command)
            connect(m, dma.o, flipped(self.o[n]))
            connect(m, dma.axi, self.join.i[n])
        return m


def run(commands, *, bursts=64, stall=0.0, stall_o=0.0, seed=0, **model):
    """Send each DMA its commands, check its results; return the memory."""
    dut = Joined(inputs=len(commands), width=64, bursts=bursts)
    memory = AxiMemory(dut.axi, stall=stall, seed=seed, **model)
    expected = [expected_words(memory, given, memory.beat_bytes) for given in commands]
    sides = {}
    for n, (given, words) in enumerate(zip(commands, expected, strict=True)):
        sides[f"command{n}"] = Side(dut.command[n], items=given, stall=stall_o)
        sides[f"o{n}"] = Side(dut.o[n], count=len(words), stall=stall_o)
    exchange(dut, sides, seed=seed, background=memory.testbenches())
    for n, words in enumerate(expected):
        assert received_words(sides[f"o{n}"].received, memory.beat_bytes) == words
    return memory


@pytest.mark.parametrize(("inputs", "bursts", "stall", "seed"), grid([2, 3], [1, 2, 64], STALLS))
def test_each_gets_its_own(inputs, bursts, stall, seed):
    rng = random.Random(seed)
    commands = [some_commands(rng, 12, 300 if stall < 0.9 else 60) for _ in range(inputs)]
    run(commands, bursts=bursts, stall=stall, stall_o=stall, seed=seed)


def test_turns_cost_no_beat():
    """Bursts of two managers alternate, and an answer may come in the cycle after its address."""
    commands = [[{"address": (n << 20) + 1024 * k, "length": 128} for k in range(16)] for n in range(2)]
    memory = run(commands, latency=(1, 1))
    assert all(later - earlier == 1 for earlier, later in pairwise(memory.cycles["r"]))
    owners = [address >> 20 for address, _ in memory.reads]
    assert all(a != b for a, b in pairwise(owners[2:-2]))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"inputs": 1}, "inputs must be an integer of at least 2, not 1"),
     ({"inputs": 2, "bursts": 0}, "bursts must be an integer of at least 1, not 0")],
)  # fmt: skip
def test_refused(options, words):
    with pytest.raises(InputError, match=f"^{words}$"):
        ReadJoin(data_width=64, **options)
