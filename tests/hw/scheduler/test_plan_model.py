"""From a model to a plan: a board sets word width and memory; a plan that the checker refuses is an error."""

import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.scheduler.plan.options import When
from hw.scheduler.plan_model import load_fused, plan_model
from tests.support.planner.graphs import pipelined_graph

WHOLE = {"tiling": When.NEVER, "pipelining": When.NEVER}


def test_a_name_and_its_graph_give_the_same_plan():
    plan = plan_model("minilm_layer", "M_R", **WHOLE)
    assert plan == plan_model(load_fused("minilm_layer"), "1M_R", **WHOLE)


def test_words_are_the_boards():
    board = load_board("zcu104")
    assert (
        plan_model(pipelined_graph(), "M_R", board=board).word_bytes
        == board.memory.port_data_width // 8
        == 16
    )
    assert plan_model(pipelined_graph(), "M_R").word_bytes == 32
    assert plan_model(pipelined_graph(), "M_R", board=board, word_bytes=64).word_bytes == 64


def test_a_wrong_option_is_refused():
    with pytest.raises(InputError, match="effort must be at least 1"):
        plan_model(pipelined_graph(), "M_R", effort=0)


def test_a_plan_that_the_checker_refuses_is_none(monkeypatch):
    monkeypatch.setattr("hw.scheduler.plan_model.check", lambda document: ["two tensors at one place"])
    with pytest.raises(AssertionError, match="wrong plan: two tensors at one place"):
        plan_model(pipelined_graph(), "M_R")
