"""From tensors to a verdict, with an engine of the tests."""

import shutil

import numpy as np
import pytest

from examples.vadd.adapter import VaddAdapter
from examples.vadd.engine import VaddConfig, VaddEngine
from hw.board import load_board
from hw.errors import InputError
from sim.build.cache import VARIABLE
from sim.build.design import kernel_design
from sim.run import run as run_module
from sim.run.run import compare, run
from tests.support.vadd import register_vadd

BOARD = load_board("u55c")
WORDS = 1000


@pytest.fixture
def tensors():
    generator = np.random.default_rng(1)
    return {name: generator.integers(-(2**31), 2**31, WORDS, np.int32) for name in "ab"}


@pytest.fixture
def vadd(monkeypatch):
    register_vadd(monkeypatch)


def test_the_verdict_and_the_report(vadd, tensors, tmp_path):
    result = run("vadd", VaddConfig(), BOARD, tensors, directory=tmp_path, seed=3)
    assert result.bit_exact
    np.testing.assert_array_equal(result.integers["c"], tensors["a"] + tensors["b"])
    np.testing.assert_array_equal(result.golden["c"], result.integers["c"])
    assert result.outputs["c"].dtype == np.float64
    report = result.report
    assert (report.engine, report.board, report.bit_exact) == ("vadd", "u55c", True)
    assert report.simulation.seed == 3
    assert report.simulation.memory_mode == "model"
    assert report.simulation.cycles_start_to_done >= report.cycles.cycles_total
    assert report.simulation.cycles_simulated > report.simulation.cycles_start_to_done
    assert report.traffic.useful_bytes == 12 * WORDS
    assert {(c.channel, c.bus_read_bytes, c.bus_write_bytes) for c in report.traffic.channels} == {
        (0, 4 * WORDS, 0),
        (1, 4 * WORDS, 0),
        (2, 0, 4 * WORDS),
    }
    assert {"verilator", "cocotb", "cxx", "amaranth", "numpy", "loomwork"} == set(report.tool_versions)


@pytest.mark.parametrize("mode", ["fast", "jitter"])
def test_the_memory_mode_changes_cycles_and_no_bit(vadd, tensors, tmp_path, mode):
    result = run("vadd", VaddConfig(), BOARD, tensors, directory=tmp_path, memory_mode=mode, seed=1)
    assert result.bit_exact
    assert result.report.simulation.memory_mode == mode


def test_a_wrong_bit_is_found_and_named(vadd, monkeypatch, tensors, tmp_path):
    right = VaddAdapter.golden
    wrong = np.arange(WORDS) == 17
    monkeypatch.setattr(VaddAdapter, "golden", lambda *given: {"c": right(*given)["c"] + wrong})
    result = run("vadd", VaddConfig(), BOARD, tensors, directory=tmp_path)
    assert not result.bit_exact
    assert not result.report.bit_exact
    (line,) = result.mismatches
    c = result.integers["c"][17]
    expected = result.golden["c"][17]
    assert line == f"c differs in 1 of 1,000 elements, first at [17]: {c}, the golden model's {expected}"


def test_the_golden_backend_needs_no_gates(vadd, tensors, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "simulated_design", None)
    result = run("vadd", VaddConfig(), BOARD, tensors, directory=tmp_path, backend="golden")
    np.testing.assert_array_equal(result.integers["c"], tensors["a"] + tensors["b"])
    assert result.measured is None
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"^backend must be rtl"):
        _ = result.report


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_mode": "slow"}, r"^memory_mode must be one of model, fast, jitter, not 'slow'$"),
        ({"backend": "fpga"}, r"^backend must be one of rtl, golden, not 'fpga'$"),
    ],
)
def test_unknown_choices_are_refused(vadd, tensors, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        run("vadd", VaddConfig(), BOARD, tensors, directory=tmp_path, **options)


def test_an_unknown_engine_is_refused(tensors, tmp_path):
    with pytest.raises(InputError, match=r"^engine must be one of attention.*, not 'nothing'$"):
        run("nothing", None, BOARD, tensors, directory=tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(vadd, tensors, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^directory must be writable"):
        run("vadd", VaddConfig(), BOARD, tensors, directory=tmp_path / "file")


def test_verilog_is_generated_once_for_each_configuration(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    engine = VaddEngine()
    calls = []
    body = VaddEngine.body
    monkeypatch.setattr(VaddEngine, "body", lambda *given: calls.append(given) or body(*given))
    first = kernel_design(engine, VaddConfig(), BOARD)
    assert kernel_design(engine, VaddConfig(), BOARD) == first
    assert len(calls) == 1
    kernel_design(engine, VaddConfig(fifo_beats=64), BOARD)
    assert len(calls) == 2
    shutil.rmtree(tmp_path)
    assert kernel_design(engine, VaddConfig(), BOARD) == first


def test_compare_names_every_kind_of_difference():
    one = np.arange(4, dtype=np.int16)
    assert compare({"a": one}, {"a": one.copy()}) == ()
    assert compare({"a": one}, {}) == ("a is missing from the golden model",)
    assert compare({}, {"a": one}) == ("a is missing from the outputs",)
    (line,) = compare({"a": one}, {"a": one.astype(np.int32)})
    assert line == "a is int16 (4,), the golden model's int32 (4,)"
    (line,) = compare({"a": one.reshape(2, 2)}, {"a": one.reshape(2, 2) * 2})
    assert line == "a differs in 3 of 4 elements, first at [0, 1]: 1, the golden model's 2"
