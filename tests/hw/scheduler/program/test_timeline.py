"""Predicted cycles where they can be counted by hand; against the RTL they are held in the regression."""

import dataclasses

import pytest

from hw.board import board_names, load_board
from hw.errors import LoomworkError
from hw.scheduler.program.program import CoreWord, OperandWord, SchedulerProgram, StepWord, TransferWord, Via
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.timeline import predict
from tests.support.program.example import example_program
from tests.support.program.random_programs import with_operand

PROGRAM = example_program(32)


def step(source, result, *, compute_cycles):
    core = CoreWord(operator=1, inputs=(source,), outputs=(result,), compute_cycles=compute_cycles)
    return StepWord(cores=(core,))


def streaming(words, *, compute_cycles=0, ring=16):
    """One step that reads a stream and keeps its result."""
    source = OperandWord(address=0, words=words, via=Via.MEMORY, ring=ring)
    return SchedulerProgram(
        word_bytes=32,
        steps=(step(source, OperandWord(address=16, words=words), compute_cycles=compute_cycles),),
        reads=(TransferWord(dram_address=0, address=0, words=words, start_step=0, ring=ring),),
    )


@pytest.mark.parametrize(("words_in", "words_out", "compute"), [(40, 10, 0), (9, 33, 70), (500, 500, 0)])
def test_steps_that_wait_for_nothing(words_in, words_out, compute):
    source, result = OperandWord(address=0, words=words_in), OperandWord(address=600, words=words_out)
    program = SchedulerProgram(word_bytes=32, steps=(step(source, result, compute_cycles=compute),) * 2)
    prediction = predict(program)
    least = 3 + max(compute, max(words_in, words_out) + 12)
    assert prediction.cycles_total == 2 * least + 3
    assert prediction.exposed_cycles == 0


def test_a_stream_is_exposed_until_arithmetic_hides_it():
    words = 600
    bare = predict(streaming(words, compute_cycles=0))
    hidden = predict(streaming(words, compute_cycles=4 * words))
    assert bare.exposed_cycles > 50  # the memory's latency at least
    assert bare.cycles_total > words + 50
    assert hidden.exposed_cycles == 0
    assert hidden.cycles_total < 4 * words + 30


@pytest.mark.parametrize("ring", [1, 2])
def test_a_short_ring_passes_its_words_in_three_cycles(ring):
    """Room shows two cycles after the release of a word."""
    words = 600
    later = predict(streaming(words, ring=ring)).cycles_total - predict(streaming(words)).cycles_total
    assert later == pytest.approx(words * (3 / ring - 1), abs=3)


def test_a_slower_memory_takes_longer():
    program = example_program(32)
    model = TimingModel()
    base = predict(program, model)
    for field in ("read_request_cycles", "read_response_cycles", "write_response_cycles"):
        slower = model._replace(**{field: getattr(model, field) + 200})
        assert predict(program, slower).cycles_total > base.cycles_total + 150
    narrow = predict(program, model._replace(word_cycles=4.0))
    assert narrow.cycles_total > base.cycles_total + 300
    assert predict(program, model) == base


@pytest.mark.parametrize("name", board_names())
def test_every_board_has_a_model(name):
    model = TimingModel.of(load_board(name))
    assert model.word_cycles > 0
    assert predict(example_program(16), model).cycles_total > 5 * 96


def changed(items, index, **fields):
    """Return ``items`` with some fields of one of them changed."""
    new = list(items)
    new[index] = dataclasses.replace(new[index], **fields)
    return tuple(new)


STUCK = {
    "a write that may never run": {"writes": changed(PROGRAM.writes, 1, start_step=5, ring=0)},
    "reads that cannot be complete": {"steps": changed(PROGRAM.steps, 2, wait_reads=2)},
    "writes that cannot be complete": {"steps": changed(PROGRAM.steps, 0, wait_writes=1)},
    "a spill before a stream": {"writes": changed(PROGRAM.writes, 0, start_step=4)},
    "a stream nobody fills": {"reads": (PROGRAM.reads[0], PROGRAM.reads[2], PROGRAM.reads[2])},
    "a stream of another core": {"reads": changed(PROGRAM.reads, 1, core=1)},
    "an open FIFO": {"steps": with_operand(PROGRAM, 3, via=Via.FIFO, ring=8)},
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", STUCK)
def test_a_program_that_waits_for_itself_is_found(case):
    with pytest.raises(LoomworkError, match="the program waits for itself"):
        predict(dataclasses.replace(PROGRAM, **STUCK[case]))


def pipelined(front, back, *, reads=(), writes=(), fifo_first=True):
    """Make a step of two cores joined by a FIFO: streams each reads and writes, and the engines' lists."""
    fifo = OperandWord(address=0, words=40, via=Via.FIFO, ring=2)
    stream = OperandWord(address=8, words=40, via=Via.MEMORY, ring=2)
    whole = OperandWord(address=16, words=40)
    inputs = [[stream] * front[0] or [whole], [fifo] + [stream] * back[0]]
    outputs = [[fifo] + [stream] * front[1], [stream] * back[1] or [whole]]
    if not fifo_first:
        inputs[1].reverse()
    cores = tuple(
        CoreWord(operator=core, inputs=tuple(inputs[core]), outputs=tuple(outputs[core])) for core in range(2)
    )

    def transfers(order):
        return tuple(
            TransferWord(dram_address=0, address=8, words=40, start_step=0, ring=2, core=core)
            for core in order
        )

    return SchedulerProgram(
        word_bytes=4,
        steps=(StepWord(cores=cores),),
        reads=transfers(reads),
        writes=transfers(writes),
    )


def test_streams_of_two_cores_wait_for_each_other_unless_they_are_in_order():
    assert predict(pipelined((1, 0), (1, 1), reads=(0, 1), writes=(1,))).cycles_total > 80
    assert predict(pipelined((0, 1), (1, 0), reads=(1,), writes=(0,), fifo_first=False)).cycles_total > 80
    for wrong in (
        pipelined((1, 0), (1, 0), reads=(1, 0)),
        pipelined((1, 0), (1, 0), reads=(0, 1), fifo_first=False),
    ):
        with pytest.raises(LoomworkError, match="the program waits for itself"):
            predict(wrong)
