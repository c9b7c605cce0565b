"""The example engine: everything an engine of `hw` gets, by one line in the registry."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from examples.vadd.adapter import ADAPTER
from examples.vadd.engine import VaddConfig, VaddWorkload
from hw.board import load_board
from hw.errors import InputError
from hw.registry import ENGINES, find_engine
from sim.build.cache import VARIABLE, default_directory
from sim.cli.main import app
from sim.run.run import run
from tests.support.processes import told
from tests.support.vadd import register_vadd

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def vadd(monkeypatch):
    register_vadd(monkeypatch)


def call(*arguments):
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return result.exit_code, result.output


def test_the_commands_know_it(tmp_path, monkeypatch):
    folder = tmp_path / "mein Ordner é 模"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert " vadd " in call("engines")[1]
    assert "fifo_beats" in json.loads(call("schema", "vadd")[1])["properties"]
    assert call("verilog", "--engine", "vadd", "--output", "v")[0] == 0
    assert "module loomwork_vadd(" in (folder / "v" / "loomwork_vadd.v").read_text()
    rng = np.random.default_rng(0)
    np.savez("in.npz", **{name: rng.integers(-100, 100, 500, np.int32) for name in "ab"})
    (folder / "c é.yaml").write_text("fifo_beats: 128\n")
    files = ("--input", "in.npz", "--config", "c é.yaml", "--output", "out é.npz", "--report", "r 模.json")
    assert call("sim", "vadd", *files)[0] == 0
    assert call("report", "r 模.json", "--output", "page é.html")[0] == 0
    assert "vadd" in (folder / "page é.html").read_text()
    # Here too is the cache, of which what follows needs nothing but what is in it: no compiler, no make.
    default_directory().mkdir(parents=True, exist_ok=True)
    (folder / "cache").symlink_to(default_directory())
    monkeypatch.setenv(VARIABLE, str(folder / "cache"))
    monkeypatch.setenv("PATH", "")
    assert call("sim", "vadd", *files)[0] == 0
    assert json.loads((folder / "r 模.json").read_text())["simulation"]["build_cached"]


def test_the_command_line_finds_it_in_this_checkout(tmp_path):
    """By the table of pyproject.toml, with no line in the registry of this process."""
    np.savez(tmp_path / "in.npz", **{name: np.arange(8, dtype=np.int32) for name in "ab"})
    files = ("--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz")
    command = [Path(sys.executable).with_name("loomwork"), "sim", "vadd", *files]
    done = subprocess.run(command, cwd=ROOT / "docs", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out.npz")["c"].tolist() == list(range(0, 16, 2))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    names = ", ".join(sorted(ENGINES.keys() - {"vadd"}))
    assert told(done.stderr).startswith(f"loomwork: engine must be one of {names}, not 'vadd'")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[tool.loomwork.engines]\nmine = 'mine'",
            "pyproject.toml: tool.loomwork.engines.mine must be module:c",
        ),
        ("[tool", "project must be TOML"),
    ],
)
def test_a_project_that_declares_no_engine_rightly_is_refused(text, says, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        find_engine("mine")


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", list(ADAPTER.cases()), ids=lambda case: case.name)
def test_gates_equal_the_golden_model_and_the_prediction(case, tmp_path):
    options = {"memory_mode": case.memory, "directory": tmp_path}
    result = run("vadd", case.config, load_board(case.board), case.tensors, **options)
    assert result.bit_exact
    prediction = result.report.prediction
    assert prediction.predicted_read_error_bytes == prediction.predicted_write_error_bytes == 0
    if case.memory == "model":
        assert abs(prediction.predicted_cycles_error_ratio) <= 0.02


def job(**tensors):
    return ADAPTER.job(tensors, VaddConfig())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: VaddConfig(fifo_beats=8), "fifo_beats must be a whole number of at least 16, not 8"),
        (lambda: VaddWorkload(words=0), "words must be at least 1, not 0"),
        (
            lambda: ADAPTER.job({"a": np.zeros(1, np.int32)}, VaddConfig()),
            "tensors must be a and b; b is missing",
        ),
        (lambda: ADAPTER.job({"a": np.zeros(1)}, VaddConfig()), "type of a must be int32, not"),
        (lambda: job(a=np.zeros(0, np.int32), b=0), "shape of a must be of one dimension and not empty"),
        (
            lambda: ADAPTER.job({"a": np.zeros(1, np.int32), "b": np.zeros(2, np.int32)}, VaddConfig()),
            r"shape of b must be \(1,\), that of a, not \(2,\)",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=f"^{message}"):
        call()
