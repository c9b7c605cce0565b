"""The oblivious map beside others: figures, measurements, tables, files, page, and the command."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from hw.board import load_board
from hw.energy.launch import predicted_microjoules
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.driver.capacity import hbm_bytes
from hw.oram.driver.workload import OramWorkload
from hw.oram.engine import OramEngine
from hw.oram.model.link import block_bursts
from sim.engines.oram.baselines import bolt, bolt_cycles, hash_table, path_oram
from sim.engines.oram.compare import suite
from sim.engines.oram.compare.compare import (
    BOLT,
    METHODS,
    OURS,
    OramComparison,
    figures_of,
    oram_tables,
    variant,
)
from sim.engines.oram.compare.measure import (
    MapSimulation,
    OperationCost,
    measure,
    measured_config,
    predicted,
    random_tensors,
)
from sim.engines.oram.compare.page import COMPARISON, cycles, hbm
from sim.engines.oram.compare.suite import named, numbers, run_compare
from sim.engines.oram.job import CODES
from sim.host.console import console
from sim.memory.trace import TRANSFER, Channel
from tests.support.command_line import call, refused
from tests.support.pages.browser import drawn_page

BOARD = load_board("u55c")
CONFIG = OramConfig()
COUNTED = OperationCost(cycles=18.5, page_bytes=409.5, bursts=1.6, hbm_bytes=14_976)
EXACT = MapSimulation(counted=COUNTED, predicted=replace(COUNTED, cycles=18.13), exact=True, seconds=9.5)
FIRST, ALWAYS = "Loomwork, one, skip", "Loomwork, one, always"


@pytest.fixture(scope="module")
def comparison():
    found = [
        figures_of(variant(CONFIG, method, log_n, value_bytes), BOARD, method)
        for value_bytes in (8, 384)
        for log_n in (16, 30)
        for method in METHODS
    ]
    return OramComparison(BOARD, CONFIG, tuple(found), {FIRST: EXACT})


@pytest.mark.sample(1)
@pytest.mark.parametrize("value_bytes", [8, 384])
def test_ours_are_the_bars_formula_and_the_prediction(comparison, value_bytes):
    """Host bytes are 2 (1 - alpha) P a label for skip and 2 P for always."""
    for method, (touch, pad) in OURS.items():
        config = variant(CONFIG, method, 30, value_bytes)
        assert (config.touch, config.pad, config.log_n, config.value_bytes) == (touch, pad, 30, value_bytes)
        found = comparison.of(method, 30, value_bytes)
        labels = (2 if touch == "both" else 1) * (0.8 if pad == "skip" else 1)
        assert found.page_bytes == pytest.approx(2 * labels * config.page_bytes, rel=1e-9)
        assert found.accesses == pytest.approx(2 * labels)
        assert found.bursts == pytest.approx(2 * labels * (1 if value_bytes == 8 else 5.5))
        assert found.slots == pytest.approx(2 * labels * 12)
        assert found.hbm_bytes == hbm_bytes(config)
        workload = OramWorkload(operations=100_000, initialize=False)
        prediction = OramEngine().predict(workload, config, BOARD)
        assert (found.source, found.cycles) == ("predicted", prediction.details["cycles_per_operation"])
        assert found.operations_per_second == pytest.approx(300e6 / found.cycles)
        launch = predicted_microjoules(OramEngine(), config, BOARD, prediction)
        assert found.microjoules == pytest.approx(launch / 100_000)


def test_the_bar_in_slots():
    """At most 0.45 of BOLT's bound for 2^20 keys: 19.2 slots of 44.8."""
    found = figures_of(variant(CONFIG, FIRST, 20, 8), BOARD, FIRST)
    assert found.slots_of_bolt == pytest.approx(19.2 / 44.8, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_others_are_the_formulas_for_our_shape(alpha):
    config = replace(CONFIG, log_n=22, value_bytes=64, alpha=alpha, items_per_label=16)
    formulas = {
        BOLT: bolt(22, 64, alpha=alpha, bin_keys=16),
        "Path ORAM": path_oram(22, 64, alpha=alpha),
        "Path ORAM, recursive": path_oram(22, 64, alpha=alpha, recursive=True),
        "hash table, insecure": hash_table(22, 64),
    }
    assert (*OURS, *formulas) == METHODS
    for method, traffic in formulas.items():
        found = figures_of(config, BOARD, method)
        assert (found.page_bytes, found.bursts) == (traffic.moved_bytes, traffic.bursts)
        assert (found.host_bytes, found.hbm_bytes) == (traffic.host_bytes, traffic.hbm_bytes)
        assert found.slots_of_bolt == traffic.slots / formulas[BOLT].slots


def test_cycles_of_others():
    """BOLT's are published, and of larger values the link's time for what is more; of others there is the
    link: bytes of both directions, and bursts that are under way for 750 ns and 3 cycles.
    """
    second = BOARD.clock_mhz * 1e6
    for log_n, value_bytes, source in ((20, 8, "published"), (20, 64, "line"), (24, 8, "line")):
        traffic = bolt(log_n, value_bytes)
        missed = 1 - 8 * 2**20 / traffic.host_bytes
        byte = second * ((1 - missed) / 12.77e9 + missed / 11.4e9)
        found = figures_of(variant(CONFIG, BOLT, log_n, value_bytes), BOARD, BOLT)
        more = (traffic.moved_bytes - bolt(log_n, 8).moved_bytes) * byte
        assert found.source == source
        assert found.cycles == pytest.approx(bolt_cycles(log_n, clock_mhz=300.0) + more)

    small = figures_of(variant(CONFIG, "Path ORAM", 12, 8), BOARD, "Path ORAM")  # 1 MB: in the host's cache
    traffic = path_oram(12, 8)
    written = traffic.write_bytes + CONFIG.command_bytes
    each = 0.75 * 300 + 3
    bursts = traffic.bursts / 2 + 1 / 16
    assert small.cycles == pytest.approx((bursts * each + written * second / 12.77e9) / 32)

    large = figures_of(variant(CONFIG, "Path ORAM", 20, 384), BOARD, "Path ORAM")
    moved = path_oram(20, 384).moved_bytes + 2 * variant(CONFIG, FIRST, 20, 384).command_bytes
    missed = 1 - 8 * 2**20 / path_oram(20, 384).host_bytes
    assert large.cycles == pytest.approx(moved * missed * second / 12.45e9)


@pytest.mark.parametrize("page_bytes", [64, 128, 256, 320, 896, 1024, 1088, 4736])
def test_bursts_of_pages_end_to_end(page_bytes):
    pages = 1024
    count = sum((n * page_bytes + page_bytes - 1) // 1024 - n * page_bytes // 1024 + 1 for n in range(pages))
    assert block_bursts(page_bytes) == count / pages


def test_what_does_not_fit_says_so(comparison):
    assert all(comparison.of(method, 16, 8).fits for method in METHODS)
    assert not any(comparison.of(method, 30, 384).fits for method in METHODS)


def test_measurements_count_what_is_on_the_buses(monkeypatch, tmp_path):
    """Initialization's writes are left out, the other port too, and a place used twice counts once."""
    config = measured_config(("one", "skip"))
    size, empty = config.page_bytes, config.host_pages

    def transfers(path, rows):
        path.parent.mkdir(parents=True, exist_ok=True)
        np.array(rows, TRANSFER).tofile(path)

    class Ran:
        bit_exact = True

        def __init__(self, tensors):
            from sim.engines.oram.adapter import ADAPTER

            self.job = ADAPTER.job(tensors, config)
            self.report = self
            self.cycles = self.simulated = self
            self.cycles_total, self.details, self.run_seconds = 44_000, {"initialization_cycles": 4000}, 1.5

    def run(engine, given, board, tensors, *, directory, seed, traces):
        assert (engine, given, seed) == ("oram", config, 3)
        pages = [(n, 0x1000 + size * n, size, 1, Channel.AW, 0) for n in range(empty)]
        later = [(900, 0x1000, size, 1, Channel.AR, 0), (950, 0x1000, size, 1, Channel.AW, 0)]
        rings = [(901, 0, 64, 0, Channel.AR, 0), (902, 0, 64, 0, Channel.AW, 0)]
        transfers(traces["host"], pages + rings + later)
        beats = [(1, 0, 32, 0, Channel.W, 0), (2, 32, 32, 0, Channel.W, 0), (3, 0, 32, 1, Channel.W, 0)]
        transfers(
            traces["hbm"],
            [*beats, (4, 0, 32, 0, Channel.W, 0), (5, 64, 32, 0, Channel.R, 0), (6, 0, 32, 0, Channel.R, 0)],
        )
        return Ran(tensors)

    monkeypatch.setattr("sim.run.run.run", run)
    found = measure(config, BOARD, 3, tmp_path)
    assert found.counted == OperationCost(
        cycles=20.0, page_bytes=2 * size / 2000, bursts=2 / 2000, hbm_bytes=128
    )
    assert (found.exact, found.seconds) == (True, 1.5)
    assert list(tmp_path.iterdir()) == []
    assert found.predicted.hbm_bytes == hbm_bytes(config)
    assert found.predicted.page_bytes == pytest.approx(2 * 0.8 * size, rel=0.05)
    assert found.predicted.bursts == found.predicted.page_bytes / size
    assert found.cycles_error == found.predicted.cycles / 20 - 1


def test_what_is_measured_touches_pages_as_the_formula_has_it():
    config = measured_config(("both", "always"))
    tensors = random_tensors(config, 1)
    assert sorted(np.unique(tensors[CODES])) == [1, 2, 3]
    prediction = OramEngine().predict(OramWorkload(operations=2000, initialize=False), config, BOARD)
    assert predicted(config, prediction).page_bytes == 4 * config.page_bytes


def request(tmp_path, **changes):
    given = {
        "log_ns": "16,20",
        "values": "8",
        "board_name": "u55c",
        "config_path": None,
        "measured": "one-skip, both-always",
        "output": tmp_path / "out",
        "seed": 0,
    }
    return given | changes


def test_command_measures_once_and_writes_everything(tmp_path, capsys):
    asked = []

    def simulate(method):
        asked.append(method)
        return EXACT

    for _ in range(2):
        assert run_compare(**request(tmp_path), simulate=simulate)
    assert asked == [FIRST, "Loomwork, both, always"]
    assert run_compare(**request(tmp_path, seed=1), simulate=simulate)
    assert len(asked) == 4
    paths = [tmp_path / "out" / f"compare.{end}" for end in ("json", "csv", "html")]
    printed = capsys.readouterr().out
    assert all(str(path) in printed and path.exists() for path in paths)
    document = json.loads(paths[0].read_text())
    assert document["config"]["slots"] == 12
    assert len(document["measured"]) == 4
    lines = list(csv.DictReader(paths[1].read_text().splitlines()))
    assert len(lines) == len(document["figures"]) == 2 * len(METHODS)
    for line, figures in zip(lines, document["figures"], strict=True):
        assert line == {name: "" if value is None else str(value) for name, value in figures.items()}


def test_an_interrupted_command_goes_on(tmp_path):
    def stopped(method):
        if method != FIRST:
            raise KeyboardInterrupt
        return EXACT

    with pytest.raises(KeyboardInterrupt):
        run_compare(**request(tmp_path), simulate=stopped)
    asked = []
    run_compare(**request(tmp_path), simulate=lambda method: asked.append(method) or EXACT)
    assert asked == ["Loomwork, both, always"]


def test_a_wrong_bit_is_an_exit_status_and_not_kept(tmp_path, monkeypatch):
    wrong = replace(EXACT, exact=False)
    assert not run_compare(**request(tmp_path), simulate=lambda method: wrong)
    assert '<td class="no">NO</td>' in (tmp_path / "out" / "compare.html").read_text()
    assert run_compare(**request(tmp_path), simulate=lambda method: EXACT)
    monkeypatch.setattr(suite, "source_digest", lambda *packages: "other gates")
    asked = []
    run_compare(**request(tmp_path), simulate=lambda method: asked.append(method) or EXACT)
    assert len(asked) == 2


def test_terminal_tables(comparison):
    out = console()
    with out.capture() as capture:
        for table in oram_tables(comparison):
            out.print(table)
    text = capture.get()
    assert re.search(r"2\^30 +Loomwork, one, skip +predicted +409\.6 +1\.60 +1\.60 +19\.2 +0\.43 x", text)
    assert re.search(r"2\^30 +Loomwork, one, always +predicted +512\.0 +2\.00", text)
    assert re.search(r"2\^16 +BOLT +line +819\.2 +3\.20 +3\.20 +41\.6 +1\.00 x", text)
    assert re.search(r"Loomwork, one, skip +409\.5 +409\.5 .* 18\.50 +18\.13 +-2\.00 % .* yes +9\.5", text)
    assert len(oram_tables(replace(comparison, measured={}))) == 2


def test_the_page_is_whole(comparison, tmp_path):
    *_, page = COMPARISON.write(comparison, tmp_path, {})
    before, after = page.read_text().split(get_plotlyjs())
    own = before + after
    assert not re.search(r"""(src|href)=["']|@import|url\(""", own)
    assert own.count("Plotly.newPlot(") == 4
    assert own.count('<tr class="predicted">') == 4 * len(OURS)
    assert own.rstrip().endswith("</html>")
    COMPARISON.write(comparison, tmp_path / "again", {})
    assert (tmp_path / "again" / "compare.html").read_bytes() == page.read_bytes()


def test_lines_of_the_page(comparison):
    figure = cycles(comparison)
    assert [trace.name for trace in figure.data] == [*METHODS, *METHODS]
    assert [trace.visible for trace in figure.data] == [True] * len(METHODS) + [False] * len(METHODS)
    ours = figure.data[0]
    assert ours.x == (16, 30)
    assert ours.y == tuple(comparison.of(FIRST, log_n, 8).cycles for log_n in (16, 30))
    assert ours.marker.color == (ours.line.color, "white"), "2^30 keys do not fit"
    [line] = hbm(comparison).layout.shapes
    assert line.y0 == line.y1 == BOARD.memory.total_bytes


@pytest.mark.soak
def test_a_browser_draws_every_chart(comparison, tmp_path):
    *_, page = COMPARISON.write(comparison, tmp_path, {})
    assert drawn_page(page, tmp_path / "profile").count('class="main-svg"') >= 4


def test_names_and_numbers_that_cannot_be():
    assert named("") == []
    with pytest.raises(InputError, match="one of one-skip, one-always, both-skip, both-always"):
        named("one-skip,two")
    assert numbers("--log-n", " 20,16") == [16, 20]
    for text, legal in (("", "whole"), ("x", "whole"), ("1,", "whole"), ("8,8", "given once")):
        with pytest.raises(InputError, match=f"--log-n must be .*{legal}"):
            numbers("--log-n", text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--log-n", "no"], "--log-n must be whole numbers with commas between"),
        (["--log-n", "16", "--log-n", "18,16"], "--log-n must be given once, not '16'"),
        (["--log-n", "31"], "log_n must be from 8 to 30"),
        (["--values", "9"], "value_bytes must be 8, 16, 32 or a multiple of 64"),
        (["--measure", "all"], "measured name must be one of"),
        (["--board", "none"], "board"),
        (["--board", "zcu104"], "board must be one with access to the host's memory"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--output", "file"], "--output must be a directory"),
    ],
)
def test_wrong_options_are_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    assert message in refused("compare", "oram", *words)


def test_the_command_needs_no_simulator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("slots: 14\n")
    shown = call("compare", "oram", "--log-n", "16", "--values", "8", "--config", "c.yaml").stdout
    assert re.search(r"2\^16 +Loomwork, one, skip", shown)
    assert (Path("build") / "compare-oram" / "compare.html").is_file()


def test_the_command_prints_every_size(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--log-n", "12", "--log-n", "10,14", "--values", "8", "--values", "16"]
    shown = call("compare", "oram", *words).stdout
    found = re.findall(r"values of (\d+) bytes|2\^(\d+) +Loomwork, one, skip", shown)
    sizes = ["10", "12", "14"]
    assert [value or log_n for value, log_n in found] == ["8", *sizes, "16", *sizes]
