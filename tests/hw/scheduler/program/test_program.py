"""Programs and configurations that cannot run are refused, with the field and what is legal."""

import dataclasses

import pytest

from hw.config import config_dict
from hw.errors import InputError
from hw.scheduler.config import SchedulerConfig, frozen, needs
from hw.scheduler.program.program import CoreWord, OperandWord, Program, StepWord, TransferWord, Via
from tests.support.program.example import example_program
from tests.support.program.random_programs import with_operand

PROGRAM = example_program(32)
CONFIG = frozen(PROGRAM, scratchpad_bytes=16384)


def changed(items, index, **fields):
    """Give ``items`` with some fields of one of them changed."""
    new = list(items)
    new[index] = dataclasses.replace(new[index], **fields)
    return tuple(new)


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


PROGRAMS = {
    "word": ({"word_bytes": 24}, "word_bytes must be a power of two from 4 to 128, not 24"),
    "no steps": ({"steps": ()}, "steps of a program must be at least one"),
    "order of reads": (
        {"reads": PROGRAM.reads[::-1]},
        "start_step of reads must be at least 3, as of the one before, not 2",
    ),
    "start": (
        {"writes": changed(PROGRAM.writes, 1, start_step=5, ring=0)},
        "start_step of writes must be less than 5, not 5",
    ),
    "reads that cannot be complete": (
        {"steps": changed(PROGRAM.steps, 2, wait_reads=2)},
        "wait_reads of step 2 must be from 0 to 1, what can be complete, not 2",
    ),
    "writes that cannot be complete": (
        {"steps": changed(PROGRAM.steps, 0, wait_writes=1)},
        "wait_writes of step 0 must be from 0 to 0, what can be complete, not 1",
    ),
    "a spill before a stream": (
        {"writes": changed(PROGRAM.writes, 0, start_step=4)},
        "order of writes must be streams first, not 'a stream of step 4 last'",
    ),
    "no stream": (
        {"reads": (PROGRAM.reads[0], PROGRAM.reads[2]), "steps": changed(PROGRAM.steps, 3, wait_reads=2)},
        r"streams of the inputs of core 0 in step 2 must be \[\(96, 32\)\], its \(words, ring\), not \[\]",
    ),
    "another ring": (
        {"writes": changed(PROGRAM.writes, 1, ring=16)},
        r"streams of the outputs of core 0 in step 4 must be \[\(96, 32\)\]",
    ),
    "a core that is not there": (
        {
            "reads": changed(PROGRAM.reads, 1, core=1),
            "steps": with_operand(PROGRAM, 5, via=Via.WHOLE, ring=0),
        },
        "core of a stream in step 2 must be less than 1, not 1",
    ),
    "two ends of a FIFO": (
        {"steps": with_operand(PROGRAM, 9, ring=8)},
        r"FIFO inputs of core 1 in step 3 must be \[\(96, 16\)\], what the core before makes",
    ),
    "open FIFO": (
        {"steps": with_operand(PROGRAM, 3, via=Via.FIFO, ring=8)},
        "FIFO outputs of the last core of step 1 must be none",
    ),
}


def pipelined(front, back, *, reads=(), writes=(), fifo_first=True):
    """Make a step of two cores joined by a FIFO: streams each reads and writes, and the engines' lists."""
    fifo = OperandWord(address=0, words=4, via=Via.FIFO, ring=2)
    stream = OperandWord(address=8, words=4, via=Via.MEMORY, ring=2)
    whole = OperandWord(address=16, words=4)
    inputs = [[stream] * front[0] or [whole], [fifo] + [stream] * back[0]]
    outputs = [[fifo] + [stream] * front[1], [stream] * back[1] or [whole]]
    if not fifo_first:
        inputs[1].reverse()
    cores = tuple(
        CoreWord(operator=core, inputs=tuple(inputs[core]), outputs=tuple(outputs[core])) for core in range(2)
    )

    def transfers(order):
        return tuple(
            TransferWord(dram_address=0, address=8, words=4, start_step=0, ring=2, core=core)
            for core in order
        )

    return Program(
        word_bytes=4,
        steps=(StepWord(cores=cores),),
        reads=transfers(reads),
        writes=transfers(writes),
    )


def test_streams_of_two_cores_that_cannot_wait_for_each_other():
    assert pipelined((1, 0), (1, 1), reads=(0, 1), writes=(1,)).cores == 2
    assert pipelined((0, 1), (1, 0), reads=(1,), writes=(0,), fifo_first=False).cores == 2


def test_streams_of_two_cores_that_could_wait_for_each_other():
    with pytest.raises(InputError, match="order of reads must be by core in a step, not 'core 0 after 1'"):
        pipelined((1, 0), (1, 0), reads=(1, 0))
    with pytest.raises(InputError, match="inputs of core 1 in step 0 must be FIFO first, if an earlier core"):
        pipelined((1, 0), (1, 0), reads=(0, 1), fifo_first=False)
    with pytest.raises(
        InputError, match=r"cores with streams written in step 0 must be one at most, not \[0, 1\]"
    ):
        pipelined((0, 1), (0, 1), writes=(0, 1))


@pytest.mark.parametrize("case", PROGRAMS)
def test_programs(case):
    fields, message = PROGRAMS[case]
    if "steps" in fields and case == "no stream":
        fields = fields | {"steps": changed(fields["steps"], 4, wait_reads=2)}
    with pytest.raises(InputError, match=message):
        dataclasses.replace(PROGRAM, **fields)


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
    "transfers": ({"max_transfers": 2.5}, "max_transfers must be from 1 to 65535, not 2.5"),
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
    with pytest.raises(InputError, match="word_bytes of the program must be 32, as of the hardware, not 16"):
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
    assert PROGRAM.transfers_total == 5
    assert PROGRAM.cores == 2
    without = Program(word_bytes=4, steps=PROGRAM.steps[:1], reads=PROGRAM.reads[:1])
    assert (without.write_bytes, without.transfers_total) == (0, 1)


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
