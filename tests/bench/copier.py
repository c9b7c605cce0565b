"""The copier before cocotbext-axi's RAM: the only place that knows that package.

Runs inside the simulator; ``DMA_SEED`` and ``DMA_STALL`` come from the test.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly, Timer
from cocotbext.axi import AxiBus, AxiRam

RAM_BYTES = 1 << 15
#: Sources lie in the lower half of the RAM, so that no copy changes what a later one reads.
HALF_BYTES = RAM_BYTES // 2
COMMANDS = 24


def pauses(rng: random.Random, stall: float) -> Iterator[bool]:
    while True:
        yield rng.random() < stall


async def send(dut: Any, name: str, commands: list[tuple[int, int]], address_bits: int) -> None:
    """Put commands on one of the streams; set between rising edges, taken at them."""
    valid, ready = getattr(dut, f"{name}__valid"), getattr(dut, f"{name}__ready")
    for address, length in commands:
        getattr(dut, f"{name}__payload").value = length << address_bits | address
        valid.value = 1
        taken = False
        while not taken:
            await ReadOnly()
            taken = bool(ready.value)
            await FallingEdge(dut.clk)
    valid.value = 0


async def tokens(dut: Any, count: int) -> None:
    dut.done__ready.value = 1
    while count:
        await ReadOnly()
        count -= int(dut.done__valid.value)
        await FallingEdge(dut.clk)


@cocotb.test()
async def copies(dut: Any) -> None:
    """Copy ranges of any length between any alignments; every byte of the RAM is compared at the end."""
    seed, stall = int(os.environ["DMA_SEED"]), float(os.environ["DMA_STALL"])
    rng = random.Random(seed)
    address_bits = len(dut.source__payload) - 32
    for name in ("source", "sink"):
        getattr(dut, f"{name}__valid").value = 0
    dut.done__ready.value = 0
    dut.rst.value = 1
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=RAM_BYTES)
    for channel in (
        ram.write_if.aw_channel,
        ram.write_if.w_channel,
        ram.write_if.b_channel,
        ram.read_if.ar_channel,
        ram.read_if.r_channel,
    ):
        channel.set_pause_generator(pauses(random.Random(rng.getrandbits(32)), stall))
    expected = bytearray(rng.randbytes(RAM_BYTES))
    ram.write(0, bytes(expected))
    await ClockCycles(dut.clk, 4)
    await Timer(5, unit="ns")
    dut.rst.value = 0
    await FallingEdge(dut.clk)

    sources, sinks = [], []
    for number in range(COMMANDS):
        length = rng.choice([rng.randint(1, 40), rng.randint(1, 600), 5000 if number == 7 else 512])
        source = rng.randrange(HALF_BYTES - length)
        sink = HALF_BYTES + rng.randrange(HALF_BYTES - length)
        sources.append((source, length))
        sinks.append((sink, length))
        expected[sink : sink + length] = expected[source : source + length]
    streams = [
        cocotb.start_soon(send(dut, "source", sources, address_bits)),
        cocotb.start_soon(send(dut, "sink", sinks, address_bits)),
        cocotb.start_soon(tokens(dut, COMMANDS)),
    ]
    for stream in streams:
        await stream
    await ClockCycles(dut.clk, 4)
    assert not dut.busy.value
    assert not dut.error.value
    assert ram.read(0, RAM_BYTES) == bytes(expected)
