"""Programs and configurations that cannot run are refused, with the field and its legal values."""

import dataclasses

import pytest

from hw.config import config_dict
from hw.errors import InputError
from hw.scheduler.config import SchedulerConfig, frozen, needs
from hw.scheduler.program.program import CoreWord, OperandWord, SchedulerProgram, StepWord, TransferWord, Via
from tests.support.program.example import example_program

PROGRAM = example_program(32)
CONFIG = frozen(PROGRAM, scratchpad_bytes=16384)


WHOLE = OperandWord(address=0, words=1)
WORDS = {
    "words": (OperandWord, {"address": 0, "words": 0}, "words of an operand must be .* at least 1, not 0"),
    "address": (OperandWord, {"address": -1, "words": 1}, "address of an operand must be .* at least 0"),
    "ring of a whole": (OperandWord, {"address": 0, "words": 1, "ring": 4}, "ring of an operand must be 0"),
    "no ring": (OperandWord, {"address": 0, "words": 1, "via": Via.FIFO}, "ring of an operand must be 0 for"),
    "operator": (
        CoreWord,
        {"operator": 1 << 16, "inputs": (), "outputs": (WHOLE,)},
        r"operator must be less than 2\^16, not 65536",
    ),
    "outputs": (
        CoreWord,
        {"operator": 0, "inputs": (), "outputs": ()},
        "outputs must be a whole number of at least 1, not 0",
    ),
    "cycles": (
        CoreWord,
        {"operator": 0, "inputs": (), "outputs": (WHOLE,), "compute_cycles": 1.5},
        "compute_cycles must be a whole number",
    ),
    "no cores": (StepWord, {"cores": ()}, "cores of a step must be from 1 to 4, not 0"),
    "transfer": (
        TransferWord,
        {"dram_address": 0, "address": 0, "words": 0, "start_step": 0},
        "words of a transfer must be a whole number of at least 1, not 0",
    ),
    "core": (
        TransferWord,
        {"dram_address": 0, "address": 0, "words": 1, "start_step": 0, "core": 1},
        "core of a transfer must be less than 4, and 0 unless it is a stream, not 1",
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_words(case):
    kind, fields, message = WORDS[case]
    with pytest.raises(InputError, match=message):
        kind(**fields)


def test_a_program_without_steps():
    with pytest.raises(InputError, match="steps of a program must be at least one"):
        dataclasses.replace(PROGRAM, steps=())


CONFIGS = {
    "word": ({"word_bytes": 24}, "word_bytes must be a power of two from 4 to 128, not 24"),
    "banks": ({"banks": 6}, "banks must be a power of two from 2 to 32, not 6"),
    "one bank": ({"banks": 1}, "banks must be a power of two from 2 to 32, not 1"),
    "memory": ({"memory": "distributed"}, "memory must be one of ultra, block"),
    "cores": ({"cores": 5}, "cores must be from 1 to 4, not 5"),
    "size": ({"scratchpad_bytes": 16385}, "scratchpad_bytes must be a multiple of 256"),
    "tiny": ({"scratchpad_bytes": 256}, "scratchpad_bytes must be from 512 to 536870912, not 256"),
    "steps": ({"max_steps": 0}, "max_steps must be from 1 to 65535, not 0"),
    "operands": ({"max_operands": 1 << 16}, "max_operands must be from 1 to 65535, not 65536"),
    "transfers": ({"max_transfers": 2.5}, "max_transfers must be a whole number, not 2.5"),
    "operator": ({"max_operator_bytes": 31}, "max_operator_bytes must be from 32 to 536870880, not 31"),
    "region": ({"max_region_bytes": 1 << 38}, "max_region_bytes must be from 32 to 137438953472"),
}
#: Each limit one below what the example needs, and what is said.
LIMITS = {
    "cores": (1, "cores of the program must be at most 1, the cores of the hardware, not 2"),
    "scratchpad_bytes": (10496, "scratchpad_bytes of the program must be at most 10496, .* not 10752"),
    "max_steps": (4, "steps of the program must be at most 4, the max_steps of the hardware, not 5"),
    "max_operands": (5, "operands of the program must be at most 5, the max_operands of .*, not 6"),
    "max_transfers": (2, "transfers of the program must be at most 2, the max_transfers of .*, not 3"),
    "max_operator_bytes": (6143, "operator_bytes of the program must be at most 6143, .* not 6144"),
    "max_region_bytes": (12287, "region_bytes of the program must be at most 12287, .* not 12288"),
}


@pytest.mark.parametrize("field", LIMITS)
def test_a_program_that_does_not_fit_is_refused(field):
    limit, message = LIMITS[field]
    shape = SchedulerConfig(scratchpad_bytes=10752)
    shape.check_program(PROGRAM)
    least = dataclasses.replace(shape, **needs(PROGRAM))
    least.check_program(PROGRAM)
    with pytest.raises(InputError, match=message):
        dataclasses.replace(shape, **{field: limit}).check_program(PROGRAM)


def test_a_program_of_other_words_is_refused():
    with pytest.raises(
        InputError, match="word_bytes of the program must be 32, as of the hardware: plan for its board"
    ):
        CONFIG.check_program(example_program(16))


@pytest.mark.parametrize("case", CONFIGS)
def test_configurations(case):
    fields, message = CONFIGS[case]
    with pytest.raises(InputError, match=message):
        dataclasses.replace(CONFIG, **fields)


def test_totals_of_a_program():
    assert PROGRAM.scratchpad_words == 3 * 96 + 32 + 16
    assert PROGRAM.memory_words == 4 * 96
    assert (PROGRAM.read_bytes, PROGRAM.write_bytes) == (3 * 96 * 32, 2 * 96 * 32)
    assert PROGRAM.cores == 2
    without = SchedulerProgram(word_bytes=4, steps=PROGRAM.steps[:1], reads=PROGRAM.reads[:1])
    assert without.write_bytes == 0


def test_widths_follow_from_the_limits():
    assert (CONFIG.word_bits, CONFIG.words, CONFIG.bank_rows) == (256, 512, 64)
    assert CONFIG.address_bits == 9
    assert 2**CONFIG.size_bits > 192 >= 2 ** (CONFIG.size_bits - 1)
    assert 2**CONFIG.dram_bits >= 384 > 2 ** (CONFIG.dram_bits - 1)
    assert (CONFIG.step_bits, CONFIG.transfer_bits) == (3, 2)


def test_a_configuration_is_plain_data():
    plain = config_dict(CONFIG)
    assert len(plain["program"]["steps"][3]["cores"]) == 2
    operand = {"address": 288, "words": 96, "via": int(Via.MEMORY), "ring": 32}
    assert plain["program"]["steps"][2]["cores"][0]["inputs"][1] == operand
    assert plain["memory"] == "ultra"
