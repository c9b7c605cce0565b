"""Offsets in memory, of one number, two or three, become entries of T taps."""

import random

import pytest

from hw.conv.movers.offset_reader import OffsetReader
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import Side, exchange


@pytest.mark.parametrize("taps", [1, 2])
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_entries(taps, stall):
    rng = random.Random(f"{taps} {stall}")
    unit = OffsetReader(small(taps=taps), data_width=128)
    jobs, commands, words, expected = [], [], [], []
    for number in range(6):
        fields = rng.choice([1, 2, 3])
        per_entry = 1 if fields == 1 else rng.choice([1, taps])
        count = rng.randint(1, 20)
        numbers = []
        for _ in range(count):
            entry = []
            for _ in range(per_entry):
                dy, dx, mask = rng.randint(-32768, 32767), rng.randint(-32768, 32767), rng.randrange(256)
                numbers += [dy, dx, mask][:fields]
                entry.append([dy, dx, mask][:fields])
            expected.append(entry)
        content = b"".join((value & 0xFFFF).to_bytes(2, "little") for value in numbers)
        job = {"address": 64 * number, "bytes": len(content), "entries": count, "units": per_entry * fields}
        jobs.append(job | {"fields": fields})
        commands.append({"address": 64 * number, "length": len(content)})
        for first in range(0, len(content), 16):
            part = content[first : first + 16]
            data = int.from_bytes(part.ljust(16, b"\xa5"), "little")
            words.append({"data": data, "keep": (1 << len(part)) - 1, "last": first + 16 >= len(content)})
    sides = {
        "i": Side(unit.i, items=jobs),
        "command": Side(unit.command, count=len(commands)),
        "words": Side(unit.words, items=words, stall=stall),
        "o": Side(unit.o, count=len(expected), stall=stall),
    }
    exchange(unit, sides)
    assert sides["command"].received == commands
    for got, wanted in zip(sides["o"].received, expected, strict=True):
        for offset, fields in zip(got, wanted, strict=False):
            assert [offset["dy"], offset["dx"], offset["mask"]][: len(fields)] == fields
