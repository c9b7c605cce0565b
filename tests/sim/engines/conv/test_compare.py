"""Convolution beside other schedules: rows, tables, files, page, and the command that makes them."""

import csv
import json
import re

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from hw import registry
from hw.board import load_board
from hw.conv.engine import ConvEngine
from hw.energy.launch import predicted_microjoules
from hw.errors import InputError
from sim.compare.simulated import CoSimulation
from sim.engines.conv.adapter import ADAPTER
from sim.engines.conv.baselines.codenet import PUBLISHED, codenet
from sim.engines.conv.baselines.gather import gather
from sim.engines.conv.compare import suite
from sim.engines.conv.compare.compare import (
    CHOSEN,
    GAPLESS,
    GATHER,
    OURS,
    ROUNDED,
    SCHEDULE,
    ConvComparison,
    ConvRow,
    ConvSetting,
    conv_tables,
    predicted,
    workload,
)
from sim.engines.conv.compare.operations import ARRAY, OUTSIDE, named, operation, works
from sim.engines.conv.compare.page import COMPARISON
from sim.engines.conv.compare.suite import measured_config, run_compare, tensors_of
from sim.host.console import console
from tests.support.pages.browser import drawn_page

BOARD = load_board("u55c")
CONFIG = ConvEngine().default_config(BOARD)
WORKS = {work.name: work for work in works()}
EXACT = CoSimulation(cycles=1_000_000, moved_bytes=40_000_000, exact=True, seconds=9.5, microjoules=31_250)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(registry.ENGINES, "conv", "hw.conv.engine:ConvEngine")


@pytest.fixture(scope="module")
def comparison():
    chosen = ("depthwise, square", "full, bounded", OUTSIDE, "config a")
    measured = {OUTSIDE: EXACT}
    setting = ConvSetting(board=BOARD, config=CONFIG)
    rows = (
        ConvRow(work=WORKS[name], predicted=predicted(WORKS[name], setting), measured=measured.get(name))
        for name in chosen
    )
    return ConvComparison(setting, tuple(rows))


@pytest.fixture
def few(monkeypatch):
    """Compare only works that are predicted quickly."""
    chosen = tuple(WORKS[name] for name in ("depthwise, bounded", OUTSIDE, "config a"))
    monkeypatch.setattr(suite, "works", lambda: chosen)


def test_figures_are_the_formulas_and_predictions(comparison):
    work = WORKS["depthwise, square"]
    gathered = comparison.of(work.name, GATHER)
    assert gathered.cycles == gather(work, ARRAY, BOARD).cycles
    assert gathered.millijoules is None
    assert comparison.of(work.name, SCHEDULE).cycles == codenet(work, BOARD).cycles
    assert comparison.of(work.name, GAPLESS).cycles == codenet(work, BOARD, loop_cycles=0).cycles
    for method, config in ((OURS, ARRAY), (CHOSEN, CONFIG)):
        ours = comparison.of(work.name, method)
        prediction = ConvEngine().predict(workload(work, config), config, BOARD)
        assert (ours.source, ours.cycles) == ("predicted", prediction.cycles_total)
        assert ours.moved_bytes == prediction.moved_bytes
        slots = prediction.cycles_total * prediction.mac_slots_per_cycle
        assert ours.utilization == pytest.approx(64 * 64 * 256 * 9 / slots)
        assert ours.milliseconds == pytest.approx(prediction.cycles_total / 300e3)
        microjoules = predicted_microjoules(ConvEngine(), config, BOARD, prediction)
        assert ours.millijoules == pytest.approx(microjoules / 1000)
    assert comparison.of(work.name, ROUNDED) is None
    full = [comparison.of("full, bounded", method).cycles for method in (OURS, ROUNDED)]
    assert full[0] == pytest.approx(3 * full[1], rel=0.01)  # a bilinear sample has three digits


def test_gathering_of_ours_is_measured_or_not_there(comparison):
    ours = comparison.of(OUTSIDE, OURS)
    assert (ours.source, ours.cycles, ours.moved_bytes) == ("measured", 1_000_000, 40_000_000)
    assert ours.millijoules == 31.25
    assert comparison.of(OUTSIDE, CHOSEN) is None
    bare = ConvComparison(comparison.setting, (ConvRow(work=WORKS[OUTSIDE], predicted={}),))
    assert bare.of(OUTSIDE, OURS) is None


def test_a_network_is_its_jobs(comparison):
    network = WORKS["config a"]
    assert len(workload(network, ARRAY).jobs) < len(network.layers) == 74
    assert comparison.of(network.name, OURS).cycles < comparison.of(network.name, SCHEDULE).cycles


def test_published_figures_stand_beside_the_schedule(comparison):
    found = {published.work: published for published in comparison.published}
    assert list(found) == ["full, bounded", "depthwise, square", "config a"]
    square = found["depthwise, square"]
    assert square.published_cycles == 525_000
    assert square.cycles == comparison.of("depthwise, square", SCHEDULE).cycles
    assert set(PUBLISHED) == set(WORKS) - {OUTSIDE}


def test_command_measures_once_and_writes_everything(few, tmp_path, capsys):
    asked = []

    def simulate(work):
        asked.append(work.name)
        return EXACT

    for _ in range(2):
        assert run_compare("u55c", None, "depthwise-all-outside,config-a", tmp_path, 0, simulate=simulate)
    assert asked == [OUTSIDE, "config a"]
    paths = [tmp_path / f"compare.{end}" for end in ("json", "csv", "html")]
    assert all(str(path) in capsys.readouterr().out or path.exists() for path in paths)
    document = json.loads(paths[0].read_text())
    assert document["configs"][OURS]["inputs"] == 16
    assert len(document["measured"]) == 2
    lines = list(csv.DictReader(paths[1].read_text().splitlines()))
    assert len(lines) == len(document["figures"])
    [found] = [line for line in lines if (line["work"], line["method"]) == ("config a", OURS)]
    assert (found["source"], found["cycles"]) == ("measured", "1000000")
    before, after = paths[2].read_text().split(get_plotlyjs())
    own = before + after
    assert not re.search(r"""(src|href)=["']|@import|url\(""", own)
    assert own.count("Plotly.newPlot(") == 3
    assert "2 of 2" in own


def test_a_wrong_bit_is_an_exit_status_and_not_kept(few, tmp_path):
    wrong = CoSimulation(cycles=1, moved_bytes=1, exact=False, seconds=1.0)
    assert not run_compare("u55c", None, "config-a", tmp_path, 0, simulate=lambda work: wrong)
    assert run_compare("u55c", None, "", tmp_path, 0)


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(InputError, match="one of depthwise, depthwise-deformable"):
        run_compare("u55c", None, "depthwise,resnet", tmp_path, 0)
    assert named(works(), "") == []


def test_terminal_tables(comparison):
    out = console()
    with out.capture() as capture:
        for table in conv_tables(comparison):
            out.print(table)
    text = capture.get()
    assert re.search(r"depthwise, square +like CoDeNet +formula +221,776", text)
    assert re.search(r"all outside +Loomwork, 16 x 16 +measured +1,000,000", text)
    assert re.search(r"depthwise, square +2\.1 +2\.3 +525,000 +221,776 +0\.42 x", text)


def test_the_simulated_launch_is_the_work():
    """Offsets, bounds and sizes as predicted; "all outside": no sample is in the buffer."""
    for name in ("depthwise, square", "depthwise, bounded"):
        work = WORKS[name]
        job = ADAPTER.job(tensors_of(work, ARRAY, 0), ARRAY)
        assert ADAPTER.workload(job, ARRAY) == workload(work, ARRAY)
    outside = WORKS[OUTSIDE]
    config = measured_config(outside)
    [planned] = ADAPTER.workload(ADAPTER.job(tensors_of(outside, config, 0), config), config).jobs
    assert planned.plan(config, beat_bits=256).route.tap.buffer.gather
    free = ADAPTER.job(tensors_of(WORKS["depthwise, square"], ARRAY, 0), ARRAY).program.steps[0].layers[0]
    [offset] = WORKS["depthwise, square"].offsets(5)
    assert (free.offset == np.round(offset.dy[8] * 32)).all()
    assert operation("depthwise").taps == 9


def test_charts_run(comparison, tmp_path):
    *_, page = COMPARISON.write(comparison, tmp_path, {})
    assert drawn_page(page, tmp_path / "profile").count('class="main-svg"') >= 3
