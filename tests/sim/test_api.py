"""What notebooks call: fields or dataclasses in, dataclasses and tables out, an error for what is wrong."""

import dataclasses
import doctest
import inspect
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import sim.api
from examples.vadd.engine import VaddConfig, VaddEngine
from hw.attention.config import AttentionConfig
from hw.attention.driver.workload import AttentionWorkload
from hw.board import load_board
from hw.errors import InputError
from hw.registry import find_engine
from hw.verilog import generate
from sim.api import frame, predict
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.run.run import Target
from sim.sweep.results import load_sweep
from tests.support.pages.reports import synthetic
from tests.support.sweeps import attention_sweep

EXAMPLES = {
    test.name.rpartition(".")[2]: test for test in doctest.DocTestFinder(exclude_empty=False).find(sim.api)
}
PUBLIC = sorted(
    name
    for name, found in vars(sim.api).items()
    if inspect.isfunction(found) and found.__module__ == "sim.api" and not name.startswith("_")
)
SHAPE = {"heads": 2, "queries": (64,), "keys": (64,), "query_size": 64, "value_size": 64}


def test_fields_and_dataclasses_are_one():
    board, engine = load_board("u55c"), find_engine("attention")
    found = predict("attention", SHAPE, {"rows": 8})
    config = AttentionConfig(**{**vars(engine.default_config(board)), "rows": 8})
    assert predict("attention", AttentionWorkload(**SHAPE), config, board) == found
    assert engine.predict(AttentionWorkload(**SHAPE), config, board) == found
    assert predict("attention", SHAPE) == predict("attention", SHAPE, engine.default_config(board))


def test_docs_python_generates_and_forecasts_with_fields():
    """The page's ``config`` is a mapping; functions that it names take it, or the dataclass."""
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(code, names)
    engine, board, fields = names["engine"], names["board"], names["config"]
    whole = dataclasses.replace(engine.default_config(board), **fields)
    assert Target.of("attention", fields, board).config == whole
    assert Target.of("attention", whole, board).config is whole
    queues = {"fifo_beats": 64}
    added = generate(VaddEngine(), queues, board)
    assert added == generate(VaddEngine(), VaddConfig(**queues), board)
    for call in (partial(Target.of, "attention"), partial(generate, engine)):
        for given, message in (({"row": 8}, "row"), ("rows=8", "configuration of attention must be a Att")):
            with pytest.raises(InputError, match=message):
                call(given, board)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"config": {"rows": 0}}, "rows must be"),
        ({"config": {"row": 8}}, "row"),
        ({"config": {"rows": 64, "lanes": 128}}, "of attention must be at most"),
        ({"workload": {"heads": 2}}, "queries"),
        ({"board": "none"}, "none"),
        ({"engine": "none"}, "none"),
    ],
)
def test_what_is_wrong_is_said(given, message):
    with pytest.raises(InputError, match=message):
        predict(**{"engine": "attention", "workload": SHAPE, **given})


def test_tables_have_a_row_for_each():
    predictions = {rows: predict("attention", SHAPE, {"rows": rows}) for rows in (8, 16)}
    table = frame(predictions, clock_mhz=100.0)
    assert list(table.index) == [8, 16]
    assert table.cycles[8] == predictions[8].cycles_total
    assert table.microseconds[8] == predictions[8].cycles_total / 100
    assert table.cycles_busy[16] == predictions[16].cycles["cycles_busy"]
    reports = frame([synthetic(), synthetic()])
    assert list(reports["cycles.cycles_total"]) == [synthetic().cycles.cycles_total] * 2


def test_a_sweep_has_a_row_for_each_design(tmp_path):
    attention_sweep(tmp_path / "a.db")
    results = load_sweep(tmp_path / "a.db")
    table = frame(results)
    assert len(table) == len(results.points)
    assert list(table.index[table.on_front]) == [point.number for point in results.front]
    assert table.dsp[3] == results.points[3].figures["dsp"]


def test_pandas_is_for_tables_alone():
    code = "import sys, sim.api; assert not {'pandas', 'numba', 'plotly'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_each_function_runs(name, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of the pages' examples
    example = EXAMPLES[name]
    assert example.examples
    assert "SKIP" not in example.docstring
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
