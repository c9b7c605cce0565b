# amaranth: UnusedElaboratable=no
"""The burst splitter against a model that walks over every byte."""

from __future__ import annotations

import random

import pytest

from hw.errors import InputError
from hw.lib.dma.burst import BurstSplitter
from tests.support.gateware.streams import STALLS, Side, exchange, seeds


def bursts(command, size, burst_beats):
    """Naive model: beats one by one, a new burst at every multiple of the longest one."""
    first, last = command["address"] // size, (command["address"] + command["length"] - 1) // size
    found = []
    for beat in range(first, last + 1):
        if not found or beat % burst_beats == 0:
            found.append({"address": beat * size, "beats": 0, "last": 0})
        found[-1]["beats"] += 1
    found[-1]["last"] = 1
    return found


def run(dut, commands, *, size, burst_beats=16, stall_i=0.0, stall_o=0.0, seed=0):
    expected = [burst for command in commands for burst in bursts(command, size, burst_beats)]
    o = Side(dut.o, count=len(expected), stall=stall_o)
    exchange(dut, {"command": Side(dut.command, items=commands, stall=stall_i), "o": o}, seed=seed)
    assert o.received == expected
    return o


@pytest.mark.parametrize("seed", seeds(2, 10))
@pytest.mark.parametrize("stall_i", STALLS)
@pytest.mark.parametrize("stall_o", STALLS)
def test_against_the_model(stall_i, stall_o, seed):
    rng = random.Random(seed)
    commands = [
        {"address": rng.randrange(1 << 20), "length": rng.choice([rng.randint(1, 70), rng.randint(1, 5000)])}
        for _ in range(6)
    ]
    run(BurstSplitter(), commands, size=32, stall_i=stall_i, stall_o=stall_o, seed=seed)


@pytest.mark.parametrize(("data_width", "burst_beats"), [(32, 1), (64, 4), (512, 16), (1024, 16), (1024, 8)])
def test_other_sizes(data_width, burst_beats):
    size = data_width // 8
    commands = [
        {"address": address, "length": length}
        for address in (0, 1, size - 1, 4096 - size, 4095)
        for length in (1, size, size + 1, 3 * size * burst_beats)
    ]
    dut = BurstSplitter(data_width=data_width, burst_beats=burst_beats)
    run(dut, commands, size=size, burst_beats=burst_beats)


def test_longest_command_begins_and_keeps_its_count():
    """A command of 4 GiB less a byte, at the top of the address space: its first bursts."""
    dut = BurstSplitter()
    command = {"address": (1 << 64) - (1 << 32) + 1, "length": (1 << 32) - 1}
    o = Side(dut.o, count=40)
    exchange(dut, {"command": Side(dut.command, items=[command]), "o": o})
    base = (1 << 64) - (1 << 32)
    assert o.received == [{"address": base + 512 * n, "beats": 16, "last": 0} for n in range(40)]


def test_a_burst_every_cycle_across_commands():
    commands = [{"address": 4096 * n, "length": 1024 if n % 2 else 10} for n in range(12)]
    o = run(BurstSplitter(), commands, size=32)
    assert o.gapless
    assert o.cycles[0] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"burst_beats": 3}, "burst_beats must be a power of two from 1 to 16, not 3"),
        ({"burst_beats": 0}, "burst_beats must be a power of two from 1 to 16, not 0"),
        ({"burst_beats": 32}, "burst_beats must be a power of two from 1 to 16, not 32"),
    ],
)
def test_refused(options, words):
    with pytest.raises(InputError, match=f"^{words}$"):
        BurstSplitter(**options)
