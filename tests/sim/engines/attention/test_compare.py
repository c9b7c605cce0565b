"""Attention beside published schedules: rows, tables, files, page, and the command that makes them."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs
from typer.testing import CliRunner

from hw.attention.config import AttentionConfig
from hw.board import load_board
from hw.errors import InputError
from sim.cli.main import app
from sim.compare.simulated import CoSimulation
from sim.engines.attention.baselines.fusemax import fusemax
from sim.engines.attention.baselines.work import Cost, Machine, Work
from sim.engines.attention.compare import suite as attention_suite
from sim.engines.attention.compare.compare import (
    METHODS,
    OURS,
    AttentionComparison,
    AttentionRow,
    attention_tables,
    prediction_error,
)
from sim.engines.attention.compare.page import COMPARISON, bandwidth, traffic, utilization
from sim.engines.attention.compare.suite import make_setting, parse_sizes, run_compare
from sim.host.console import console
from tests.support.pages.browser import drawn_page

BOARD = load_board("u55c")
CONFIG = AttentionConfig()
SETTING = make_setting(CONFIG, BOARD, 12)


def row(tokens=1024, *, cycles=400_000, moved=3_932_160, exact=True, measured=True):
    simulated = CoSimulation(cycles=cycles, moved_bytes=moved, exact=exact, seconds=9.5, microjoules=31_250)
    return AttentionRow(
        tokens=tokens,
        predicted=Cost(cycles=394_000, moved_bytes=3_932_160, microjoules=30_000),
        measured=simulated if measured else None,
    )


@pytest.fixture
def comparison():
    return AttentionComparison(SETTING, (row(), row(65536, measured=False)))


def test_others_get_what_the_engine_has():
    config = AttentionConfig(
        rows=8,
        lanes=32,
        folds=1,
        streams=2,
        cached_keys=256,
        merge_lanes=2,
        output="int8",
        probability_bits=16,
    )
    setting = make_setting(config, BOARD, 3)
    assert setting.machine.macs == 2 * 8 * 32 * 2
    # Keys and values of both streams; queries, and 40 bits of running result for each stream.
    assert setting.machine.on_chip_bytes == 2 * 2 * 256 * 32 + 8 * 32 * (1 + 2 * 5)
    assert setting.machine.bytes_per_cycle == pytest.approx(412.5e9 / 300e6)
    work = Work(heads=3, queries=100, keys=100, size=32, input_bytes=1, output_bytes=1)
    assert setting.work(100) == work


def test_figures_of_ours_are_measured_where_they_were(comparison):
    ours, last = (comparison.of(given, OURS) for given in comparison.rows)
    assert (ours.source, ours.cycles, last.source, last.cycles) == ("measured", 400_000, "predicted", 394_000)
    assert ours.utilization == pytest.approx(12 * 2 * 1024**2 * 64 / 4096 / 400_000)
    assert ours.over_compulsory == pytest.approx(3_932_160 / (12 * 1024 * 64 * 5))
    assert ours.milliseconds == pytest.approx(400_000 / 300e3)
    assert ours.bytes_per_cycle == pytest.approx(3_932_160 / 400_000)
    law = 12 * 1024**2 * 64**2 / SETTING.machine.on_chip_bytes
    assert ours.over_flash_law == pytest.approx(3_932_160 / law)
    assert [prediction_error(*found) for found in comparison.measured] == [pytest.approx(-0.015)]


def test_figures_of_the_others_are_the_formulas(comparison):
    found = {figures.method: figures for figures in comparison.figures if figures.tokens == 1024}
    assert tuple(found) == METHODS
    cost = fusemax(SETTING.work(1024), SETTING.machine)
    assert found["FuseMax"].cycles == cost.cycles
    assert found["FuseMax"].utilization == pytest.approx(2 * 16 * 64 / (16 * 138 + 64))
    assert found["FSA"].utilization == pytest.approx(128 / 331)
    assert {figures.source for figures in found.values()} == {"measured", "formula"}


def test_terminal_tables(comparison):
    out = console()
    with out.capture() as capture:
        for table in attention_tables(comparison):
            out.print(table)
    text = capture.get()
    assert re.search(
        r"1,024 +Loomwork +measured +400,000 +1\.333 +98\.30 % +3\.75 MiB +1\.00 x.* 31\.25 *\n", text
    )
    assert re.search(r"65,536 +Loomwork +predicted.* 30\.00 *\n", text)
    assert re.search(r"1,024 +ITA +formula +393,217.* – *\n", text)
    assert re.search(r"1,024 +400,000 +394,000 +-1\.50 % +3,932,160 +3,932,160 +yes +9\.5", text)
    assert len(attention_tables(AttentionComparison(SETTING, (row(measured=False),)))) == 1


def test_files_hold_every_figure(comparison, tmp_path):
    data, table, page = COMPARISON.write(comparison, tmp_path / "new", {})
    document = json.loads(data.read_text())
    assert document["setting"]["config"]["rows"] == 32
    assert document["setting"]["machine"]["macs"] == 4096
    lines = list(csv.DictReader(table.read_text().splitlines()))
    assert len(lines) == len(document["figures"]) == 2 * len(METHODS)
    for line, figures in zip(lines, document["figures"], strict=True):
        assert line == {name: "" if value is None else str(value) for name, value in figures.items()}
    before, after = page.read_text().split(get_plotlyjs())
    own = before + after
    assert not re.search(r"""(src|href)=["']|@import|url\(""", own)
    assert own.count("Plotly.newPlot(") == 3
    assert own.count('<tr class="measured">') == 1
    COMPARISON.write(comparison, tmp_path / "again", {})
    assert (tmp_path / "again" / "compare.html").read_bytes() == page.read_bytes()


def test_wrong_bits_stand_out(tmp_path):
    wrong = AttentionComparison(SETTING, (row(exact=False),))
    assert not wrong.exact
    _, _, page = COMPARISON.write(wrong, tmp_path, {})
    assert '<td class="no">NO</td>' in page.read_text()
    assert "tile bad" in page.read_text()


def test_lines_of_the_page(comparison):
    figure = utilization(comparison)
    lines = {trace.name: trace for trace in figure.data}
    assert tuple(reversed(lines)) == METHODS
    assert lines[OURS].x == (1024, 65536)
    assert lines[OURS].y[0] == pytest.approx(98.304)
    assert lines[OURS].marker.color == (lines[OURS].line.color, "white")
    assert "measured" in lines[OURS].customdata[0]
    assert "predicted" in lines[OURS].customdata[1]
    assert figure.layout.xaxis.ticktext == ("1K", "64K")
    law = traffic(comparison).data[-1]
    work = SETTING.work(1024)
    expected = 12 * 1024**2 * 64**2 / SETTING.machine.on_chip_bytes / work.compulsory_bytes
    assert law.y[0] == pytest.approx(expected)
    assert bandwidth(comparison).data[-1].y == (pytest.approx(1375.0),) * 2


def test_names_cannot_break_the_page(tmp_path):
    evil = "</script><b>"
    setting = replace(SETTING, board=evil)
    _, _, page = COMPARISON.write(AttentionComparison(setting, (row(),)), tmp_path, {})
    assert evil not in page.read_text().replace(get_plotlyjs(), "")


@pytest.mark.soak
def test_a_browser_draws_every_chart(comparison, tmp_path):
    COMPARISON.write(comparison, tmp_path, {})
    drawn = drawn_page(tmp_path / "compare.html", tmp_path / "profile")
    assert drawn.count('class="main-svg"') >= 6
    assert drawn.count('class="trace scatter') >= 3 * len(METHODS) + 2


class Runs:
    """Stands for co-simulations: counts them, and stops as if interrupted when told to."""

    def __init__(self, stop_at=0, exact=True):
        self.lengths, self.stop_at, self.exact = [], stop_at, exact

    def __call__(self, tokens):
        if tokens == self.stop_at:
            raise KeyboardInterrupt
        self.lengths.append(tokens)
        return CoSimulation(cycles=1000 * tokens, moved_bytes=10 * tokens, exact=self.exact, seconds=1.0)


def request(tmp_path, **changes):
    fields = {
        "sizes": "256,1024,512",
        "board_name": "u55c",
        "config_path": None,
        "heads": 2,
        "measure_up_to": 512,
        "output": tmp_path / "out",
        "seed": 0,
    }
    return fields | changes


def test_an_interrupted_comparison_goes_on(tmp_path, capsys, monkeypatch):
    first = Runs(stop_at=512)
    with pytest.raises(KeyboardInterrupt):
        run_compare(**request(tmp_path), simulate=first)
    assert first.lengths == [256]
    second = Runs()
    assert run_compare(**request(tmp_path), simulate=second)
    assert second.lengths == [512]
    # Fewer lengths lose nothing that more had.
    third = Runs()
    run_compare(**request(tmp_path, sizes="256"), simulate=third)
    run_compare(**request(tmp_path), simulate=third)
    assert third.lengths == []
    document = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert [entry["source"] for entry in document["figures"] if entry["method"] == OURS] == [
        "measured", "measured", "predicted",
    ]  # fmt: skip
    for changes in ({"heads": 3}, {"seed": 1}, {"board_name": "u280"}):
        again = Runs()
        run_compare(**request(tmp_path, **changes), simulate=again)
        assert again.lengths == [256, 512]
    monkeypatch.setattr(attention_suite, "source_digest", lambda *packages: "other gates")
    again = Runs()
    run_compare(**request(tmp_path), simulate=again)
    assert again.lengths == [256, 512]
    assert "measured" in capsys.readouterr().out


def test_what_was_wrong_is_simulated_again(tmp_path):
    assert not run_compare(**request(tmp_path), simulate=Runs(exact=False))
    again = Runs()
    assert run_compare(**request(tmp_path), simulate=again)
    assert again.lengths == [256, 512]


def test_a_file_of_another_kind_is_not_used(tmp_path):
    (tmp_path / "out").mkdir()
    for text in ("", "[]", '{"format": "other"}', '{"format": "loomwork-compare-attention/1"}'):
        (tmp_path / "out" / "compare.json").write_text(text)
        runs = Runs()
        run_compare(**request(tmp_path, sizes="256"), simulate=runs)
        assert runs.lengths == [256]


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("", "numbers"),
        ("x", "numbers"),
        ("0", "numbers"),
        ("65537", "65536"),
        ("5,5", "given once"),
        ("1,", "numb"),
    ],
)
def test_sizes_that_cannot_be(text, legal):
    with pytest.raises(InputError, match=f"--sizes must be .*{legal}"):
        parse_sizes(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sizes", "no"], "--sizes must be numbers of tokens from 1 to 65536 with commas between"),
        (["--heads", "0"], "--heads must be from 1 to 1024"),
        (["--measure-up-to", "-1"], "--measure-up-to must be from 0 to 65536"),
        (["--board", "none"], "board"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--output", "file"], "--output must be a directory"),
    ],
)
def test_wrong_options_are_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    result = CliRunner().invoke(app, ["compare", "attention", *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("loomwork: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_the_command_predicts_without_a_simulator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["compare", "attention", "--sizes", "256,65536", "--heads", "1", "--measure-up-to", "0"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.stderr
    assert "65,536" in result.stdout
    assert (Path("build") / "compare-attention" / "compare.html").is_file()


def test_machine_of_the_default_is_that_of_the_bars():
    machine = make_setting(CONFIG, BOARD, 1).machine
    assert isinstance(machine, Machine)
    assert (machine.macs, machine.side) == (4096, 64)
