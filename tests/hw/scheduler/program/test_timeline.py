"""Predicted cycles where they can be counted by hand; against the RTL they are held in the regression."""

import pytest

from hw.board import board_names, load_board
from hw.scheduler.program.program import CoreWord, OperandWord, Program, StepWord, TransferWord, Via
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.timeline import predict
from tests.support.program.example import example_program


def step(source, result, *, compute_cycles):
    core = CoreWord(operator=1, inputs=(source,), outputs=(result,), compute_cycles=compute_cycles)
    return StepWord(cores=(core,))


def streaming(words, *, compute_cycles):
    """One step that reads a stream and keeps what it makes."""
    source = OperandWord(address=0, words=words, via=Via.MEMORY, ring=16)
    return Program(
        word_bytes=32,
        steps=(step(source, OperandWord(address=16, words=words), compute_cycles=compute_cycles),),
        reads=(TransferWord(dram_address=0, address=0, words=words, start_step=0, ring=16),),
    )


@pytest.mark.parametrize(("words_in", "words_out", "compute"), [(40, 10, 0), (9, 33, 70), (500, 500, 0)])
def test_steps_that_wait_for_nothing(words_in, words_out, compute):
    source, result = OperandWord(address=0, words=words_in), OperandWord(address=600, words=words_out)
    program = Program(word_bytes=32, steps=(step(source, result, compute_cycles=compute),) * 2)
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
