"""Weights arrive in the order of jobs, tiles once for each block, and each packet goes to its unit."""

import random

import pytest

from hw.conv.core.packets import Record
from hw.conv.movers.weight_reader import WeightReader
from tests.hw.conv.core.plain import packets, small
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import Side, exchange


def tile_packet(rng, config, width, *, parameters):
    beats = -(-config.tile_bits // width)
    if parameters:
        beats += -(-config.outputs * 128 // width)
    header = int(Record.TILE) | int(parameters) << 3 | rng.getrandbits(12) << 4
    return [header, *(rng.getrandbits(width) for _ in range(beats))]


@pytest.mark.parametrize("width", [128, 256, 512])
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_packets(width, stall):
    rng = random.Random(f"{width} {stall}")
    config = small()
    unit = WeightReader(config, data_width=width)
    memory = AxiMemory(unit.axi, stall=stall / 2)
    jobs, taps, tiles = [], [], []
    for number in range(5):
        records = [[rng.getrandbits(128) for _ in range(rng.randint(1, 9))] for _ in range(2)]
        first = packets([(Record.TAPS, False, records[0]), (Record.PARAMETERS, True, records[1])], width)
        first = first if rng.random() < 0.7 else []
        block = [
            beat
            for n in range(rng.randint(1, 3))
            for beat in tile_packet(rng, config, width, parameters=n == 0)
        ]
        repeats = rng.randint(0 if first else 1, 3)
        base = 0x10000 * (number + 1)
        for at, beats in ((base, first), (base + 0x8000, block)):
            content = b"".join(beat.to_bytes(width // 8, "little") for beat in beats)
            memory.bytes.update({at + n: value for n, value in enumerate(content)})
        jobs.append(
            {
                "address": base,
                "bytes": len(first) * width // 8,
                "tiles": base + 0x8000,
                "tile_bytes": len(block) * width // 8,
                "repeats": repeats,
            }
        )
        taps += first
        tiles += block * repeats
    sides = {
        "i": Side(unit.i, items=jobs),
        "taps": Side(unit.taps, count=len(taps), stall=stall),
        "tiles": Side(unit.tiles, count=len(tiles), stall=stall),
    }
    exchange(unit, sides, background=memory.testbenches())
    assert sides["taps"].received == taps
    assert sides["tiles"].received == tiles
