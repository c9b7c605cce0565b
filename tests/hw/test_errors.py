"""Unknown names: the message ends with the one that was likely meant."""

import numpy as np
import pytest

from hw.board import load_board
from hw.config import load_config
from hw.errors import InputError, nearest
from hw.registry import find_engine
from sim.api import predict
from sim.run.run import find_adapter
from tests.support.command_line import call


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("rowz", ["rows", "lanes"], "rows"),
        ("engines.attention.Rows", ["rows", "lanes"], "rows"),
        ("U55C", ["u50", "u55c"], "u55c"),
        ("colour", ["rows", "lanes"], ""),
        ("rows", [], ""),
    ],
)
def test_the_nearest_name(name, known, meant):
    assert nearest(name, known) == meant


def config(tmp_path):
    (tmp_path / "c.yaml").write_text("rowz: 8\n")
    load_config(find_engine("attention"), tmp_path / "c.yaml", load_board("u55c"))


def tensor(engine, name):
    adapter, board = find_adapter(engine), load_board("u55c")
    adapter.job({name: np.zeros(1, np.int8)}, find_engine(engine).default_config(board))


@pytest.mark.parametrize(
    ("ask", "meant"),
    [
        (lambda folder: find_engine("atention"), "attention"),
        (lambda folder: load_board("u55d"), "u55c"),
        (config, "rows"),
        (lambda folder: predict("attention", {"head": 1}), "heads"),
        (lambda folder: tensor("attention", "q_scal"), "q_scale"),
        (lambda folder: tensor("conv", "offsets"), "offset"),
        (lambda folder: tensor("oram", "value"), "values"),
        (lambda folder: tensor("scheduler", "sed"), "seed"),
    ],
)
def test_who_refuses_a_name_says_the_nearest(ask, meant, tmp_path):
    with pytest.raises(InputError, match=rf"; did you mean '{meant}'\?$"):
        ask(tmp_path)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("simm", "attention"), "No such command 'simm'. Did you mean 'sim'"),
        (("compare", "atention"), "No such command 'atention'. Did you mean 'attention'"),
        (
            ("sim", "attention", "--ouput", "o.npz"),
            "No such option: --ouput (Possible options: --input, --output)",
        ),
        (("sim", "oram", "--labls", "l.csv"), "No such option: --labls (Possible options: --labels"),
    ],
)
def test_commands_and_options(words, says):
    assert says in call(*words, status=2).stderr
