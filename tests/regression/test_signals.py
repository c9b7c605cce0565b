"""A transformer on tokens in gates, every bit, and the log of its cores beside the kernel's own counters."""

import dataclasses
import itertools

import numpy as np
import pytest

from hw.board import load_board
from hw.errors import LoomworkError
from hw.network.commands import Core
from hw.network.graph.transformer.writer import written
from hw.network.kernel.signals import signals
from hw.network.matrix.timing import steps_of_blocks
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.network.adapter import MODEL
from sim.engines.network.cases import SMALL
from sim.engines.network.demo.activity import activity_of
from sim.engines.network.token_inputs import TokenModel
from sim.run.run import run
from sim.run.signals import read_signals
from tests.support.networks.sentences import small

BOARD = load_board("u55c")
IDS = np.array([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2]])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    model = folder / "small.onnx"
    model.write_bytes(written(small("mask", "heads", "gelu", "norm")))
    tensors = {MODEL: np.array(TokenModel(path=model), object), "input_ids": IDS}
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the launch is short
        return run("network", SMALL, BOARD, tensors, directory=folder, signals=folder / "signals.log")


@pytest.fixture(scope="module")
def log(done):
    return read_signals(done.signals, [*signals(SMALL)])


def test_every_bit_is_the_golden_models(done):
    assert done.bit_exact, done.mismatches
    assert {step.core for step in done.job.program.steps} == set(Core)


def test_commands_are_the_programs_and_work_is_as_counted(done, log):
    cycles, program = done.report.cycles, done.job.program
    found = activity_of(log, program, cycles.cycles_total)
    assert sum(found.at_once) == cycles.cycles_total
    # A cycle counts as busy where any unit works.
    assert sum(found.at_once[1:]) == cycles.cycles_busy
    for core in Core:
        own = [each for each in found.commands if each.core is core]
        assert [each.operator for each in own] == [s.operator for s in program.steps if s.core is core]
        assert all(0 < each.begin < each.end < cycles.cycles_total for each in own)
        assert all(one.end <= other.begin for one, other in itertools.pairwise(own))
        # A unit's counters may have its last cycle when its command is finished.
        outside = found.working[core].sum() - sum(each.working for each in own)
        assert 0 <= outside <= (0 if core is Core.MATRIX else len(own))
        assert found.working[core].any()
    commands = [step.command for step in program.steps if step.core is Core.MATRIX]
    array = sum(sum(steps_of_blocks(each)) * each.taps * each.column_tiles for each in commands)
    assert found.working[Core.MATRIX].sum() == array


def test_words_at_ports_are_the_bytes_counted(done, log):
    found = activity_of(log, done.job.program, done.report.cycles.cycles_total)
    ports = {port.port: port for port in done.report.traffic.ports}
    width = BOARD.memory.port_data_width // 8
    assert found.reads.sum() * width == ports["gmem0"].useful_read_bytes
    assert found.writes.sum() * width == ports["gmem0"].useful_write_bytes
    assert found.weights.sum() * width == ports["gmem1"].useful_read_bytes


def test_a_log_of_other_commands_is_refused(done, log):
    program = dataclasses.replace(done.job.program, steps=done.job.program.steps[:-1])
    with pytest.raises(LoomworkError, match="commands, and the log"):
        activity_of(log, program, done.report.cycles.cycles_total)
