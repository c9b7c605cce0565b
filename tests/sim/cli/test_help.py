"""Help: commands in groups, and of each engine its tensors and columns, with example lines that work."""

import shlex
from pathlib import Path

import numpy as np
import pytest
import typer

from hw.attention.driver.tensors import NAMES as ATTENTION
from hw.conv.driver.table import COLUMNS, DERIVED, OPTIONAL
from hw.conv.driver.tensors import ATTRIBUTES, TENSORS
from hw.oram.core.layouts import Code
from hw.registry import ENGINES
from sim.cli.main import app
from sim.engines.oram.job import NAMES as ORAM
from sim.host.options import PANELS
from sim.run.run import find_adapter
from tests.support.command_line import call
from tests.support.vadd import register_vadd

ROOT = Path(__file__).parents[3]
#: Of an engine that names none.
EXAMPLE = "--input in.npz"
#: Names by engine and option.
NAMES = {
    ("attention", "input"): ATTENTION,
    ("conv", "input"): (*TENSORS, *ATTRIBUTES),
    ("conv", "network"): (*COLUMNS, *OPTIONAL, *DERIVED),
    ("oram", "input"): ORAM,
    ("oram", "ops"): ("op", "key", "value"),
    ("network", "input"): ("NAME", "input_ids", "attention_mask", "seed"),
    ("scheduler", "input"): ("NAME", "seed"),
}


def test_every_command_stands_once_below_a_title():
    commands = typer.main.get_command(app).commands
    assert len(commands) > 20
    lines = call("--help").stdout.splitlines()
    titles = [lines.index(f"{panel}:") for panel in PANELS]
    assert titles == sorted(titles)
    listed = [line.split()[0] for line in lines[titles[0] :] if line.startswith("  ") and line[2] != " "]
    assert sorted(listed) == sorted(commands)
    assert "Commands:" not in lines


@pytest.mark.parametrize(("engine", "option"), NAMES)
def test_help_names_every_tensor_and_column(engine, option):
    (kind,) = (kind for kind in find_adapter(engine).input_files if kind.option == option)
    told = [name for names in kind.content for name in names.split(", ")]
    assert sorted(told) == sorted(NAMES[engine, option])
    for command in ("sim", "predict", "launch"):
        shown = call(command, engine, "--help").stdout
        assert f"{'Columns' if kind.suffix == '.csv' else 'Tensors'} of --{option}:" in shown
        for names in kind.content:
            assert f"\n  {names}" in shown
        assert f" {command} {engine} {find_adapter(engine).examples[0]}" in shown


def test_every_tensor_file_and_table_is_described():
    described = {
        (name, kind.option) for name in ENGINES for kind in find_adapter(name).input_files if kind.content
    }
    assert described == NAMES.keys()
    columns = {kind.option: kind.content for kind in find_adapter("oram").input_files}["ops"]
    assert all(code.name.lower() in columns["op"] for code in Code)


@pytest.mark.parametrize("engine", ["attention", "conv", "oram"])
def test_the_examples_work(engine, monkeypatch):
    monkeypatch.chdir(ROOT)
    for words in find_adapter(engine).examples:
        assert "cycles, start to done" in call("predict", engine, *shlex.split(words)).stdout


def test_an_engine_of_a_project_describes_its_own(tmp_path, monkeypatch):
    register_vadd(monkeypatch)
    monkeypatch.chdir(tmp_path)
    shown = call("launch", "vadd", "--help").stdout
    assert "[n]: the summands, int32" in shown
    assert f" launch vadd {EXAMPLE} --output card" in shown
    np.savez("in.npz", **{name: np.arange(3, dtype=np.int32) for name in "ab"})
    assert "sums a second" in call("predict", "vadd", *shlex.split(EXAMPLE)).stdout


def test_without_an_engine_help_says_where_to_look():
    for command in ("sim", "predict", "launch"):
        assert f"{command} ENGINE --help" in call(command, "--help").stdout
