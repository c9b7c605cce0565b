"""The page of a sweep: its figures' data, its warnings, table, files, and what a browser makes of it."""

import csv
import itertools
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from hw.board import load_board
from hw.board.resources import Resources
from hw.config import config_dict, load_config
from hw.registry import find_engine
from sim.cli.main import app
from sim.sweep import charts
from sim.sweep.monotone import larger_than, slower_though_larger
from sim.sweep.results import compared, load_sweep
from tests.support.command_line import call, refused
from tests.support.pages.browser import drawn_page
from tests.support.sweeps import PARAMETERS, attention_sweep


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("sweep") / "attention.db"
    attention_sweep(path)
    return path


@pytest.fixture(scope="module")
def results(database):
    return load_sweep(database)


@pytest.fixture(scope="module")
def page(database):
    path = database.with_name("page.html")
    call("report", str(database), "--output", str(path))
    return path


def test_the_page_lies_beside_its_database_and_replaces_no_other_document(database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "own.db"
    own.write_bytes(database.read_bytes())
    Path("report.json").write_text("{}")
    line = refused("report", "own.db", "--output", "report.html")
    assert "--output must be a page beside which no other report.json lies" in line
    for _ in range(2):  # what is its own it replaces
        call("report", "own.db")
    assert Path("report.json").read_text() == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("own.csv", "own.db", "own.html", "own.json", "report.json")
    ]


def test_fronts_are_the_best_of_two_figures(results):
    figure = charts.pareto(results, "dsp")
    menu = figure.layout.updatemenus[0]
    assert [button.label for button in menu.buttons] == ["all workloads", *results.spec.workloads]
    by_name = {trace.name: trace for trace in figure.data if trace.visible}
    assert len(by_name["simulated"].x) == 2
    sound = [point for point in results.points if not point.failure]
    assert len(by_name["predicted"].x) + 2 == len(sound)
    line = list(zip(by_name["front of these two"].x, by_name["front of these two"].y, strict=True))
    for point in sound:
        dsp, cycles = point.figures["dsp"], point.figures["cycles"]
        assert any(x <= dsp and y <= cycles for x, y in line)
    assert all(later <= before for (_, before), (_, later) in itertools.pairwise(line))


def test_what_a_constraint_left_out_is_drawn_as_such(tmp_path):
    attention_sweep(tmp_path / "a.db", constraints=["bram36 <= 25"], simulated=())
    results = load_sweep(tmp_path / "a.db")
    figure = charts.pareto(results, "bram36")
    drawn = next(trace for trace in figure.data if trace.visible and trace.name.startswith("left out"))
    assert len(drawn.x) == sum(point.failure.startswith("does not keep") for point in results.points) > 0


def test_lines_through_all_parameters_and_figures(results):
    (trace,) = charts.parallel(results).data
    labels = [dimension.label for dimension in trace.dimensions]
    assert labels[:4] == list(PARAMETERS)
    assert {"log10 cycles", "DSP", "bytes moved"} <= set(labels)
    known = [point for point in results.points if point.figures]
    rows = trace.dimensions[0]
    assert [int(rows.ticktext[place]) for place in rows.values] == [
        point.point.parameters["attention.rows"] for point in known
    ]


def test_cells_have_the_best_of_what_is_free(results):
    figure = charts.heat(results, "minilm.cycles")
    assert len(figure.data) == len(figure.layout.updatemenus[0].buttons) == 6
    first, button = figure.data[1], figure.layout.updatemenus[0].buttons[1]
    assert button.label == "streams by rows"
    assert button.args[1] == {"xaxis.title.text": "rows", "yaxis.title.text": "streams"}
    for line, streams in enumerate(PARAMETERS["streams"]):
        for column, rows in enumerate(PARAMETERS["rows"]):
            found = [
                point.figures["minilm.cycles"]
                for point in results.points
                if not point.failure
                and point.point.parameters["attention.streams"] == streams
                and point.point.parameters["attention.rows"] == rows
            ]
            assert first.z[line][column] == min(found)


def test_every_design_is_under_its_roof(results):
    figure = charts.roofline(results)
    roof = figure.data[0]
    slope = roof.y[0] / roof.x[0]
    board = load_board("u55c")
    assert slope == pytest.approx(board.memory.realistic_bytes_per_second / (board.clock_mhz * 1e6))
    dots = [trace for trace in figure.data if trace.mode == "markers"]
    assert [trace.name for trace in dots] == list(results.spec.workloads)
    for trace in dots:
        assert len(trace.x) == len(results.points) - 1
        assert all(y <= min(slope * x, roof.y[1]) * 1.001 for x, y in zip(trace.x, trace.y, strict=True))


def test_engines_share_the_dsps_of_a_front(results):
    figure = charts.split(results)
    (bars,) = figure.data
    assert bars.name == "attention"
    assert len(bars.y) == len(results.front)
    front = {point.number: point for point in results.front}
    for name, count, (_, number) in zip(bars.y, bars.x, bars.customdata, strict=True):
        assert count == front[number].figures["attention.dsp"]
        objectives = [f"{abs(value):,.4g}" for value in results.objectives(front[number])]
        assert name == f"{', '.join(objectives)} (point {number})"
    assert figure.layout.shapes[0].x0 == load_board("u55c").user.dsp


def test_the_worst_prediction_has_its_name(results):
    figure = charts.predictions(results)
    errors = [value for trace in figure.data for value in trace.y]
    assert len(errors) == 4
    assert all(error == pytest.approx(100 / 1.004 - 100, abs=0.02) for error in errors)
    (note,) = figure.layout.annotations
    worst = max((each for point in results.points for each in compared(point)), key=lambda e: abs(e.error))
    assert note.text.startswith(f"worst: point {worst.number}, {worst.workload}, {worst.error:+.2%}")


def test_larger_designs_that_are_slower_are_found(results):
    points = {point.number: point for point in results.points}
    found = slower_though_larger(results)
    assert found == sorted(found, key=lambda each: -each.excess)
    for each in found:
        smaller, larger = points[each.smaller], points[each.larger]
        changed = {
            name for name, value in smaller.point.parameters.items() if larger.point.parameters[name] != value
        }
        assert changed == {each.parameter}
        assert larger_than(larger, smaller)
        assert each.excess > 0
        predicted = larger.outcome("prediction", workload=each.workload)
        assert predicted.figures["cycles"] == each.larger_cycles
    # More exact probabilities take more of the board, and never fewer cycles; a second stream does.
    assert {each.parameter for each in found} >= {"attention.cached_keys"}
    assert not any(each.parameter == "attention.rows" and each.workload == "minilm" for each in found)


def test_table_and_document_have_every_point(page, results):
    lines = list(csv.DictReader(page.with_suffix(".csv").read_text().splitlines()))
    assert len(lines) == len(results.points) == 24
    assert float(lines[3]["predicted_cycles_error_ratio"]) == pytest.approx(1 / 1.004 - 1, abs=1e-4)
    assert lines[1]["failure"] == "attention: rows must be odd, not 8"
    assert lines[1]["cycles"] == ""
    assert int(lines[23]["rows"]) == 32
    document = json.loads(page.with_suffix(".json").read_text())
    assert document["format"] == "loomwork-sweep-points-1"
    assert [point["number"] for point in document["points"]] == list(range(24))


def test_the_page_has_configurations_commands_and_reports(page, results, tmp_path):
    text = page.read_text()
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?!data:)", text)
    designs = json.loads(re.search(r", DESIGNS = (\{.*\});\n", text)[1])
    design = designs["3"]
    assert design["reports"]["minilm"]["engine"] == "attention"
    assert design["compared"][0].startswith("minilm: ")
    # The command does what it says up to the tools that it calls.
    heredoc, _, rest = design["commands"]["attention"].rpartition("\n")
    subprocess.run(["bash", "-ec", heredoc], cwd=tmp_path, check=True)
    assert rest.startswith(
        "loomwork verilog --engine attention --board u55c --config point-3-attention.yaml "
    )
    assert rest.endswith(" --lint")
    written = tmp_path / "point-3-attention.yaml"
    assert yaml.safe_load(written.read_text()) == results.points[3].point.configs["attention"]
    config = load_config(find_engine("attention"), written, load_board("u55c"))
    assert config_dict(config) == results.points[3].point.configs["attention"]


@pytest.mark.soak
def test_the_command_of_the_best_design_gives_verilog_that_lints(page, results, tmp_path, monkeypatch):
    """A design on the front that does useful work in 95 % of all slots and fits the board."""
    monkeypatch.chdir(tmp_path)
    best = max(results.front, key=lambda point: point.figures["minilm.utilization"])
    assert best.figures["minilm.utilization"] >= 0.95
    board = load_board("u55c")
    gates = best.outcome("prediction").figures
    assert not Resources(**{name: int(count) for name, count in gates.items()}).over_shares(board.user)
    designs = json.loads(re.search(r", DESIGNS = (\{.*\});\n", page.read_text())[1])
    heredoc, _, command = designs[str(best.number)]["commands"]["attention"].rpartition("\n")
    subprocess.run(["bash", "-ec", heredoc], check=True)
    program, *words = shlex.split(command)
    assert program == "loomwork"
    assert "has nothing to say" in call(*words).stdout


def test_a_browser_draws_it(page, tmp_path):
    document = drawn_page(page, tmp_path / "profile", width=400)
    assert "24 of 24" in document
    assert document.count('<tr class="left ') == sum(
        bool(p.failure) for p in load_sweep(page.with_name("attention.db")).points
    )
    assert document.count("main-svg") >= 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{db}", "{db}"], "reports must be one database of a sweep"),
        (["{db}", "--label", "a"], "--label must be left out"),
        (["{db}", "--output", "{db}"], "--output"),
        (["{db}", "--output", "none/page.html"], "--output must be in a directory that exists"),
        (["{text}"], "SQLite"),
        (["{empty}"], "database must be a sweep's: it has no table of that name, not 'empty.db'"),
    ],
)
def test_what_is_wrong_is_one_line(words, message, database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_bytes(b"SQLite format 3\0 and nothing else")
    Path("empty.db").touch()
    given = [word.format(db=database, text="text.db", empty="empty.db") for word in words]
    result = CliRunner().invoke(app, ["report", *given])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    if message != "SQLite":
        assert message in result.stderr
