# amaranth: UnusedElaboratable=no
"""Rows out of packed words, and rows into packed words: every size, and a part or a word a cycle."""

import random

import pytest

from hw.errors import InputError
from hw.lib.rows.command import RowsCommand
from hw.lib.rows.cutter import RowCutter
from hw.lib.rows.packer import RowPacker
from tests.support.gateware.streams import STALLS, Side, built, exchange, grid, seeds


def rows_of(most_units, unit_bits=128):
    return RowsCommand(most_rows=8, most_units=most_units, unit_bits=unit_bits)


def packed_words(rows, size, width):
    """Return the words of one command of the read DMA: (data, keep, last) with noise where nothing is
    kept.
    """
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


def row_parts(row, size):
    """Cut a row into parts of ``size`` bytes, the last one padded with zeros."""
    cuts = [row[at : at + size] for at in range(0, len(row), size)]
    return [
        {"elements": int.from_bytes(cut, "little"), "last": int(n == len(cuts) - 1)}
        for n, cut in enumerate(cuts)
    ]


def cut(command, part_bytes, width, commands, *, stalls=(0.0, 0.0, 0.0), seed=0):
    """Put commands of (rows, bytes of a row) through a cutter, check all parts; gives the sides."""
    rng = random.Random(seed)
    words, expected = [], []
    for rows, size in commands:
        content = [rng.randbytes(size) for _ in range(rows)]
        words += packed_words(content, size, width)
        expected += [part for row in content for part in row_parts(row, part_bytes)]
    cutter = built(RowCutter, command, part_bits=8 * part_bytes, data_width=width)
    unit = command.unit_bits // 8
    items = [{"rows": rows, "units": size // unit} for rows, size in commands]
    sides = {
        "rows": Side(cutter.rows, items=items, stall=stalls[0]),
        "i": Side(cutter.i, items=words, stall=stalls[1]),
        "o": Side(cutter.o, count=len(expected), stall=stalls[2]),
    }
    exchange(cutter, sides, seed=seed)
    assert sides["o"].received == expected
    return sides


@pytest.mark.sample(3)
@pytest.mark.parametrize("width", [128, 256, 512, 1024])
@pytest.mark.parametrize("part_bytes", [16, 32, 48, 80, 128])
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_every_size_of_row_and_word(width, part_bytes, seed):
    rng = random.Random(seed)
    most = part_bytes * rng.choice([1, 2, 3, 4]) // 16
    commands = [(rng.randint(1, 5), 16 * rng.randint(1, most)) for _ in range(5)]
    cut(rows_of(most), part_bytes, width, commands, seed=seed)
    cut(rows_of(most), part_bytes, width, commands, stalls=rng.choices(STALLS, k=3), seed=seed)


@pytest.mark.parametrize(("stall_rows", "stall_i", "stall_o", "seed"), grid(STALLS, STALLS, STALLS))
def test_cutting_however_sides_wait(stall_rows, stall_i, stall_o, seed):
    rng = random.Random(seed)
    commands = [(rng.randint(1, 5), rng.randint(1, 9)) for _ in range(4)]
    width, part_bytes = rng.choice([(8, 3), (16, 3), (32, 3), (32, 2), (64, 1)])
    stalls = (stall_rows, stall_i, stall_o)
    cut(rows_of(9, unit_bits=8), part_bytes, width, commands, stalls=stalls, seed=seed)


@pytest.mark.parametrize(
    ("width", "part_bytes", "size"),
    [(1024, 16, 16), (1024, 80, 80), (512, 48, 144), (256, 16, 48), (128, 16, 16)],
)
def test_a_part_a_cycle(width, part_bytes, size):
    """Words at least as wide as parts: no gap, also from command to command where these are whole words."""
    command = rows_of(4 * part_bytes // 16)
    assert cut(command, part_bytes, width, [(8, size)] * 3)["o"].gapless
    cycles = cut(command, part_bytes, width, [(5, size), (7, size), (8, size)])["o"].cycles
    parts_of_all = 20 * -(-size // part_bytes)
    assert cycles[-1] - cycles[0] + 1 <= parts_of_all + 2  # at the most a cycle at the end of a command


@pytest.mark.parametrize(("width", "part_bytes", "size"), [(128, 64, 64), (256, 128, 128), (256, 64, 128)])
def test_a_word_a_cycle(width, part_bytes, size):
    """Words narrower than parts: the words go in without a gap."""
    sides = cut(rows_of(size // 16), part_bytes, width, [(8, size)] * 4)
    words = 4 * 8 * size * 8 // width
    assert sides["o"].cycles[-1] <= words + 4


def pack(command, width, commands, *, stalls=(0.0, 0.0, 0.0), seed=0):
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
    packer = built(RowPacker, command, data_width=width)
    unit = command.unit_bits // 8
    items = [{"rows": rows, "units": size // unit} for rows, size in commands]
    sides = {
        "rows": Side(packer.rows, items=items, stall=stalls[0]),
        "i": Side(packer.i, items=beats, stall=stalls[1]),
        "o": Side(packer.o, count=len(expected), stall=stalls[2]),
    }
    exchange(packer, sides, seed=seed)
    for word, piece in zip(sides["o"].received, expected, strict=True):
        assert word.to_bytes(step, "little")[: len(piece)] == piece
    return sides


@pytest.mark.sample(2)
@pytest.mark.parametrize("width", [128, 256, 512, 1024])
@pytest.mark.parametrize("most", [8, 16])
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_packing_every_size(width, most, seed):
    rng = random.Random(seed)
    commands = [(rng.randint(1, 8), 16 * rng.randint(1, most)) for _ in range(5)]
    pack(rows_of(most), width, commands, seed=seed)
    pack(rows_of(most), width, commands, stalls=rng.choices(STALLS, k=3), seed=seed)


@pytest.mark.parametrize(("stall_rows", "stall_i", "stall_o", "seed"), grid(STALLS, STALLS, STALLS))
def test_packing_however_sides_wait(stall_rows, stall_i, stall_o, seed):
    rng = random.Random(seed)
    commands = [(rng.randint(1, 5), rng.randint(1, 9)) for _ in range(4)]
    stalls = (stall_rows, stall_i, stall_o)
    pack(rows_of(9, unit_bits=8), rng.choice([8, 16, 32]), commands, stalls=stalls, seed=seed)


def test_packing_whole_beats_has_no_gap():
    assert pack(rows_of(4), 256, [(8, 64), (3, 64), (8, 32)])["o"].gapless


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RowsCommand(most_rows=0, most_units=1, unit_bits=8), "most_rows must be a whole number"),
        (lambda: RowsCommand(most_rows=1, most_units=0, unit_bits=8), "most_units must be a whole number"),
        (
            lambda: RowsCommand(most_rows=1, most_units=1, unit_bits=12),
            "unit_bits must be a power of two, not 12",
        ),
        (
            lambda: RowCutter(rows_of(4), part_bits=128, data_width=192),
            "data_width must be a power of two of at least 128, not 192",
        ),
        (
            lambda: RowPacker(rows_of(4), data_width=64),
            "data_width must be a power of two of at least 128, not 64",
        ),
        (
            lambda: RowCutter(rows_of(4), part_bits=192, data_width=128),
            "part_bits must be a multiple of 128, not 192",
        ),
    ],
)
def test_sizes_are_checked(call, message):
    with pytest.raises(InputError, match=f"^{message}"):
        call()
