# amaranth: UnusedElaboratable=no
"""Rows out of packed words, and rows into packed words: every size, and a part or a word a cycle."""

import random

import pytest

from hw.attention.movers.gearbox import RowCutter
from hw.attention.movers.packer import RowPacker
from hw.errors import InputError
from tests.hw.attention.plain import parts, small
from tests.support.gateware.streams import STALLS, Side, exchange, seeds


def packed_words(rows, size, width):
    """Give the words of one command of the read DMA: (data, keep, last) with noise where nothing is kept."""
    raw = b"".join(rows)
    step = width // 8
    words = []
    for at in range(0, len(raw), step):
        piece = raw[at : at + step]
        noise = bytes([0xA5]) * (step - len(piece))
        words.append(
            {
                "data": int.from_bytes(piece + noise, "little"),
                "keep": (1 << len(piece)) - 1,
                "last": int(at + step >= len(raw)),
            }
        )
    return words


def elements(part):
    return int.from_bytes(bytes(value & 255 for value in part), "little")


def cut(config, width, commands, *, stall=0.0, seed=0):
    """Put commands of (rows, bytes of a row) through a cutter, check all parts; gives the sides."""
    rng = random.Random(seed)
    words, expected = [], []
    for rows, size in commands:
        content = [rng.randbytes(size) for _ in range(rows)]
        words += packed_words(content, size, width)
        for row in content:
            cuts = parts(config, row)
            expected += [
                {"elements": elements(part), "last": int(n == len(cuts) - 1)} for n, part in enumerate(cuts)
            ]
    cutter = RowCutter(config, data_width=width)
    sides = {
        "rows": Side(cutter.rows, items=[{"rows": r, "units": s // 16} for r, s in commands], stall=stall),
        "i": Side(cutter.i, items=words, stall=stall),
        "o": Side(cutter.o, count=len(expected), stall=stall),
    }
    exchange(cutter, sides, seed=seed)
    assert sides["o"].received == expected
    return sides


@pytest.mark.parametrize("width", [128, 256, 512, 1024])
@pytest.mark.parametrize("lanes", [16, 32, 48, 80, 128])
@pytest.mark.parametrize("seed", seeds(1, 8))
def test_every_size_of_row_and_word(width, lanes, seed):
    rng = random.Random(seed)
    config = small(rows=8, lanes=lanes, folds=rng.choice([1, 2, 3, 4]))
    commands = [(rng.randint(1, 5), 16 * rng.randint(1, config.max_head_dim // 16)) for _ in range(5)]
    for stall in (0.0, rng.choice(STALLS[1:3])):
        cut(config, width, commands, stall=stall, seed=seed)


@pytest.mark.parametrize(
    ("width", "lanes", "size"), [(1024, 16, 16), (1024, 80, 80), (512, 48, 144), (256, 16, 48), (128, 16, 16)]
)
def test_a_part_a_cycle(width, lanes, size):
    """Words at least as wide as parts: no gap, also from command to command where these are whole words."""
    config = small(rows=8, lanes=lanes, folds=4)
    assert cut(config, width, [(8, size)] * 3)["o"].gapless
    cycles = cut(config, width, [(5, size), (7, size), (8, size)])["o"].cycles
    parts_of_all = 20 * -(-size // lanes)
    assert cycles[-1] - cycles[0] + 1 <= parts_of_all + 2  # at the most a cycle at the end of a command


@pytest.mark.parametrize(("width", "lanes", "size"), [(128, 64, 64), (256, 128, 128), (256, 64, 128)])
def test_a_word_a_cycle(width, lanes, size):
    """Words narrower than parts: the words go in without a gap."""
    sides = cut(small(rows=8, lanes=lanes), width, [(8, size)] * 4)
    words = 4 * 8 * size * 8 // width
    assert sides["o"].cycles[-1] <= words + 4


def pack(config, width, commands, *, stall=0.0, seed=0):
    """Put the rows of commands, (rows, bytes of a row), through a packer, check all words."""
    rng = random.Random(seed)
    step = width // 8
    beats, expected = [], []
    for rows, size in commands:
        content = [rng.randbytes(size) for _ in range(rows)]
        for row in content:
            padded = row + rng.randbytes(-size % step)
            beats += [int.from_bytes(padded[at : at + step], "little") for at in range(0, len(padded), step)]
        raw = b"".join(content)
        expected += [raw[at : at + step] for at in range(0, len(raw), step)]
    packer = RowPacker(config, data_width=width)
    sides = {
        "rows": Side(packer.rows, items=[{"rows": r, "units": s // 16} for r, s in commands], stall=stall),
        "i": Side(packer.i, items=beats, stall=stall),
        "o": Side(packer.o, count=len(expected), stall=stall),
    }
    exchange(packer, sides, seed=seed)
    for word, piece in zip(sides["o"].received, expected, strict=True):
        assert word.to_bytes(step, "little")[: len(piece)] == piece
    return sides


@pytest.mark.parametrize("width", [128, 256, 512, 1024])
@pytest.mark.parametrize("output", ["int8", "int16"])
@pytest.mark.parametrize("seed", seeds(1, 20))
def test_packing_every_size(width, output, seed):
    rng = random.Random(seed)
    config = small(rows=8, lanes=64, folds=2, output=output)
    most = 2 * 64 * config.result_bits // 8
    commands = [(rng.randint(1, 8), 16 * rng.randint(1, most // 16)) for _ in range(5)]
    for stall in (0.0, rng.choice(STALLS[1:3])):
        pack(config, width, commands, stall=stall, seed=seed)


def test_packing_whole_beats_has_no_gap():
    assert pack(small(rows=8), 256, [(8, 64), (3, 64), (8, 32)])["o"].gapless


@pytest.mark.parametrize("make", [RowCutter, RowPacker])
def test_widths_are_checked(make):
    with pytest.raises(InputError, match=r"^data_width must be a power of two of at least 128, not 192$"):
        make(small(), data_width=192)
