"""Cycles of programs whose commands overlap, beside those of the kernel."""

import itertools

import numpy as np
import pytest

from hw.board import load_board
from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.model.overlap import overlap
from hw.network.program.lower import program_of
from hw.network.program.order import order
from tests.sim.golden.test_program_tokens import compiled, small

CONFIG = NetworkConfig(attention_rows=16)
BOARD = load_board("u55c")


@pytest.fixture(scope="module")
def program():
    made = compiled(small("gelu"), (40,))
    return program_of(made)


def test_commands_overlap_and_each_core_keeps_its_order(program):
    barriers, ordered = (overlap(each, CONFIG, BOARD) for each in (program, order(program, CONFIG)))
    assert ordered.cycles < barriers.cycles
    for core in Core:
        ends = [span.end for span in ordered.spans if span.step.core == core]
        assert len(ends) > 1
        assert ends == sorted(ends)
    begins = np.array([span.begin for span in ordered.spans])
    ends = np.array([span.end for span in ordered.spans])
    assert (begins <= ends).all()
    assert (begins[1:] < ends[:-1]).any()


def test_a_barrier_waits_for_all_before_it(program):
    spans = overlap(program, CONFIG, BOARD).spans
    assert all(later.begin > former.end for former, later in itertools.pairwise(spans))


def test_the_launch_ends_behind_its_load_and_its_transfers(program):
    found = overlap(order(program, CONFIG), CONFIG, BOARD)
    words = sum(each.words for each in (*program.reads, *program.writes))
    assert found.read_cycles + found.drain_cycles >= 2 * words
    assert found.cycles == max(span.end for span in found.spans) + found.drain_cycles
