"""Which text of an engine is simulated."""

import pytest

import sim.build.design as under_test
from examples.vadd.engine import VaddConfig, VaddEngine
from hw.board import load_board
from hw.errors import InputError
from hw.registry import find_engine
from sim.build.design import MULTIPLIERS_VARIABLE, kernel_design, simulated_design


@pytest.fixture
def asked(monkeypatch):
    """Return what is asked of `kernel_design`, which then generates nothing."""
    found = []
    monkeypatch.setattr(under_test, "kernel_design", lambda *_, **options: found.append(options))
    monkeypatch.delenv(MULTIPLIERS_VARIABLE, raising=False)
    return found


def simulate(engine, **options):
    engine, board = find_engine(engine), load_board("u55c")
    simulated_design(engine, engine.default_config(board), board, **options)


def test_models_stand_for_multipliers_where_an_engine_has_any(asked, monkeypatch):
    simulate("attention")
    simulate("conv")
    simulate("attention", packaged=True)
    simulate("attention", control_only=True)
    monkeypatch.setenv(MULTIPLIERS_VARIABLE, "cells")
    simulate("attention")
    assert [options["models"] for options in asked] == [True, False, False, False, False]
    assert [options["control_only"] for options in asked] == [False, False, False, True, False]


def test_another_choice_is_refused(asked, monkeypatch):
    monkeypatch.setenv(MULTIPLIERS_VARIABLE, "gates")
    with pytest.raises(InputError, match="models or cells"):
        simulate("attention")


def test_templates_are_those_of_this_checkout_whoever_generated_the_text(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOMWORK_CACHE", str(tmp_path))
    engine, board = VaddEngine(), load_board("u55c")
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    monkeypatch.setattr(VaddEngine, "templates", elsewhere)
    assert kernel_design(engine, VaddConfig(), board).templates == elsewhere
    monkeypatch.setattr(VaddEngine, "templates", here)
    monkeypatch.setattr("hw.verilog.generate", None)  # found in the cache
    assert kernel_design(engine, VaddConfig(), board).templates == here
