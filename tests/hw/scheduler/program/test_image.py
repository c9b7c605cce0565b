"""The program image, decoded by the documented format."""

import dataclasses

import pytest

from hw.scheduler.program.image import encode
from tests.support.program.example import example_program
from tests.support.program.random_programs import RandomProgram

#: Tables by number, and their fields with bits, from bit 4.
INDEX, WORDS = 16, 24
TRANSFER = {"dram": 32, "address": WORDS, "words": WORDS, "ring": WORDS, "cores": 4, "start_step": INDEX}
OPERAND = {"address": WORDS, "words": WORDS, "ring": WORDS, "via": 2}
COMMAND = {"operator": 16, "inputs": 12, "outputs": 12, "input_words": 24, "output_words": 24, "cycles": 32}
FIELDS = {
    0: {"version": 12, "magic": 32, "word_bytes": 16, "records": 32, "scratchpad_words": 32},
    1: {"wait_writes": INDEX, "wait_reads": INDEX, "active": 4, "last": 1},
    **dict.fromkeys((2, 3), TRANSFER),
    **dict.fromkeys(range(4, 8), COMMAND),
    **dict.fromkeys(range(8, 16), OPERAND),
}


def decoded(image, record_bytes):
    """Tables by number: a list of rows each."""
    tables = {}
    for first in range(0, len(image), record_bytes):
        record = int.from_bytes(image[first : first + record_bytes], "little")
        number, record = record % 16, record >> 4
        row = {}
        for name, bits in FIELDS[number].items():
            row[name], record = record % 2**bits, record >> bits
        assert record == 0, "what is behind the fields is 0"
        tables.setdefault(number, []).append(row)
    return tables


@pytest.mark.parametrize("word_bytes", [4, 16, 32, 128])
def test_an_image_holds_the_program(word_bytes):
    program = example_program(word_bytes)
    image = encode(program)
    size = max(16, word_bytes)
    tables = decoded(image, size)
    (header,) = tables.pop(0)
    assert header == {
        "version": 1,
        "magic": int.from_bytes(b"LWPI", "little"),
        "word_bytes": word_bytes,
        "records": len(image) // size,
        "scratchpad_words": 336,
    }
    assert int.from_bytes(image[:size], "little") % 16 == 0, "the header is the first record"
    assert [row["active"] for row in tables[1]] == [1, 1, 1, 3, 1]
    assert [row["last"] for row in tables[1]] == [0, 0, 0, 0, 1]
    assert [(row["wait_reads"], row["wait_writes"]) for row in tables[1]] == [
        (step.wait_reads, step.wait_writes) for step in program.steps
    ]
    for number, transfers in ((2, program.reads), (3, program.writes)):
        assert [tuple(row.values()) for row in tables[number]] == [
            (each.dram_address, each.address, each.words, each.ring, 1 << each.core, each.start_step)
            for each in transfers
        ]
    assert [row["operator"] for row in tables[4]] == [0, 1, 2, 3, 5]
    (second,) = tables[5]
    assert second == {
        "operator": 4, "inputs": 2, "outputs": 1, "input_words": 192, "output_words": 96, "cycles": 96,
    }  # fmt: skip
    via = {"WHOLE": 0, "MEMORY": 1, "FIFO": 2}
    second = program.steps[3].cores[1]
    for number, operands in ((9, second.inputs), (13, second.outputs)):
        assert [tuple(row.values()) for row in tables[number]] == [
            (each.address, each.words, each.ring, via[each.via.name]) for each in operands
        ]


def test_equal_programs_give_equal_images():
    first, second = (RandomProgram(3).make() for _ in range(2))
    assert encode(first) == encode(second) != encode(RandomProgram(4).make())


def test_what_has_no_place_in_a_record_is_not_cut_off():
    program = example_program(32)
    reads = (dataclasses.replace(program.reads[0], dram_address=1 << 32), *program.reads[1:])
    with pytest.raises(OverflowError, match="dram 4294967296 has more than 32 bits"):
        encode(dataclasses.replace(program, reads=reads))
