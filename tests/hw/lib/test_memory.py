# amaranth: UnusedElaboratable=no
"""Banked memory against NumPy; nothing of it depends on, or writes, an initial content."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hw.errors import InputError
from hw.lib.convert import to_verilog
from hw.lib.memory import NO_INIT, BankedMemory
from tests.support.gateware.streams import seeds, simulate

SMALL = {"banks": 2, "depth": 6, "lanes": 3, "lane_width": 4, "ram_style": "block"}


def lanes_of(word):
    return [word >> (4 * index) & 15 for index in range(3)]


async def write(ctx, dut, bank, addr, lanes, enables):
    ctx.set(dut.write[bank].addr, addr)
    ctx.set(dut.write[bank].data, sum(lane << (4 * index) for index, lane in enumerate(lanes)))
    ctx.set(dut.write[bank].en, sum(bit << index for index, bit in enumerate(enables)))


@pytest.mark.parametrize("seed", seeds(3, 10))
@pytest.mark.parametrize("read_latency", [1, 2])
@pytest.mark.parametrize("ram_style", ["distributed", "block", "ultra"])
def test_random_traffic(ram_style, read_latency, seed):
    """All banks at once: any lanes written, any word read, reads of the word being written left out."""
    dut = BankedMemory(**{**SMALL, "ram_style": ram_style, "read_latency": read_latency})
    rng = random.Random(seed)
    words = np.zeros((2, 6, 3), dtype=int)

    async def traffic(ctx):
        # Words at power-up may hold anything: write every one of them first.
        for bank in range(2):
            for addr in range(6):
                words[bank, addr] = [rng.randrange(16) for _ in range(3)]
                await write(ctx, dut, bank, addr, words[bank, addr].tolist(), [1, 1, 1])
                await ctx.tick()
            ctx.set(dut.write[bank].en, 0)
        visible = [None, None]
        on_the_way = [[None] * read_latency for _ in range(2)]
        for _ in range(120):
            for bank in range(2):
                enables = [rng.randrange(2) for _ in range(3)]
                lanes = [rng.randrange(16) for _ in range(3)]
                write_addr, read_addr = rng.randrange(6), rng.randrange(6)
                await write(ctx, dut, bank, write_addr, lanes, enables)
                reads = rng.randrange(2) and not (any(enables) and read_addr == write_addr)
                ctx.set(dut.read[bank].en, reads)
                ctx.set(dut.read[bank].addr, read_addr)
                on_the_way[bank].append(words[bank, read_addr].tolist() if reads else None)
                for index in range(3):
                    if enables[index]:
                        words[bank, write_addr, index] = lanes[index]
            await ctx.tick()
            for bank in range(2):
                # Issued `read_latency` cycles ago; otherwise the data stays as it was.
                arrived = on_the_way[bank][-read_latency]
                visible[bank] = arrived or visible[bank]
                if visible[bank] is not None:
                    assert lanes_of(ctx.get(dut.read[bank].data)) == visible[bank]

    simulate(dut, traffic)


@pytest.mark.parametrize("depth", [2, 6, 8])
def test_clear_walker(depth):
    """Every word is zero after ``depth`` cycles, whatever was there; writes during the walk are lost."""
    dut = BankedMemory(**{**SMALL, "depth": depth, "ram_style": "ultra"})

    async def clear(ctx):
        for _ in range(2):  # a second walk works as the first
            for addr in range(depth):
                for bank in range(2):
                    await write(ctx, dut, bank, addr, [15, 9, 3], [1, 1, 1])
                await ctx.tick()
            for bank in range(2):
                ctx.set(dut.write[bank].en, 0)
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            cycles = 0
            while ctx.get(dut.clearing):
                await write(ctx, dut, 0, depth - 1 - cycles, [7, 7, 7], [1, 1, 1])
                await ctx.tick()
                cycles += 1
            assert cycles == depth
            ctx.set(dut.write[0].en, 0)
            for addr in range(depth):
                for bank in range(2):
                    ctx.set(dut.read[bank].en, 1)
                    ctx.set(dut.read[bank].addr, addr)
                await ctx.tick()
                for bank in range(2):
                    assert ctx.get(dut.read[bank].data) == 0

    simulate(dut, clear)


def test_verilog_has_the_style_and_no_initial_content():
    text = to_verilog(BankedMemory(**{**SMALL, "ram_style": "ultra"}), name="banks")
    assert text.count('ram_style = "ultra"') == 2
    assert text.count("reg [11:0] bank_") == 2
    assert "initial begin" not in text
    assert NO_INIT not in text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"banks": 0}, "^banks must be an integer of at least 1, not 0$"),
        ({"depth": 1}, "^depth must be an integer of at least 2, not 1$"),
        ({"lanes": 0}, "^lanes must be an integer of at least 1, not 0$"),
        ({"lane_width": -8}, "^lane_width must be an integer of at least 1, not -8$"),
        ({"read_latency": 3}, "^read_latency must be 1 or 2, not 3$"),
        ({"ram_style": "lut"}, "^ram_style must be one of distributed, block, ultra, not 'lut'$"),
    ],
)
def test_impossible_parameters_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        BankedMemory(**{**SMALL, **wrong})
