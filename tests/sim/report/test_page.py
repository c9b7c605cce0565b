"""The page: self-contained, every run on it, and its figures those of the reports."""

import csv
import dataclasses
import re
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

from hw.board import load_board
from hw.config import config_dict, config_hash
from hw.errors import InputError
from hw.registry import find_engine
from sim.report import charts
from sim.report.figures import SUMMARY, labels, lines, named_by_file
from sim.report.page import render
from sim.report.report import load, save
from sim.report.style import DARK
from tests.support.command_line import call, refused
from tests.support.pages.browser import drawn_page
from tests.support.pages.reports import arguments, synthetic


def several(count):
    """Return reports that differ in size, configuration, stall causes and outcome."""
    reports = []
    for number in range(count):
        given = arguments(queries=32 * (number + 1), keys=64 * (number % 5 + 1), stall_cycles=40 * number)
        if number % 3 == 1:
            given["counters"] = given["counters"] | {"cycles_stall_scores": 0}
            given["config"] = given["config"] | {"rows": 16}
        given["bit_exact"] = number != 6
        given["label"] = f"run {number}" if number % 2 else ""
        reports.append(synthetic(**given))
    return reports


def page(reports, tmp_path):
    path = tmp_path / "page.html"
    render(reports, path)
    return path.read_text()


def body(text):
    """Return the page without plotly.js, which must be in it once."""
    before, after = text.split(get_plotlyjs())
    return before + after


@pytest.mark.parametrize("count", [1, 2, 20])
def test_page_holds_everything_itself(tmp_path, count):
    reports = several(count)
    text = page(reports, tmp_path)
    own = body(text)
    assert not re.search(r"""(src|href)=["']|@import|url\(""", own)
    assert own.count("Plotly.newPlot(") == 5
    for label in labels(reports):
        assert own.count(label) >= 3
    for report in reports:
        for figure in (
            report.cycles.cycles_total,
            report.traffic.compulsory_bytes,
            report.traffic.useful_bytes,
            report.prediction.predicted_cycles,
        ):
            assert f"{figure:,}" in own
        assert f"{100 * report.work.mac_utilization_ratio:.2f} %" in own
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_page_is_the_same_every_time(tmp_path):
    assert page(several(3), tmp_path) == page(several(3), tmp_path)


def test_a_wrong_run_stands_out(tmp_path):
    own = body(page(several(8), tmp_path))
    assert "7 of 8" in own
    assert own.count('<td class="no">NO</td>') == 1
    assert 'class="tile bad"' in own
    assert 'class="tile good"' in body(page(several(2), tmp_path))


def test_a_run_of_control_alone_claims_nothing_of_data(tmp_path):
    simulation = arguments()["simulation"] | {"control_only": True}
    alone = synthetic(simulation=simulation, bit_exact=None, errors={})
    text = body(page([alone], tmp_path))
    assert "not compared" in text
    assert "<td>not computed</td>" in text
    assert "bit for bit" not in text
    assert "1 of 1</div>" in (both := body(page([alone, *several(1)], tmp_path)))
    assert "1 of control only" in both


def test_labels_cannot_break_the_page(tmp_path):
    own = body(page([synthetic(label="</script><b>&"), synthetic(label="x" * 200)], tmp_path))
    assert "</script><b>" not in own
    assert "&lt;/script&gt;&lt;b&gt;&amp;" in own


def test_configuration_is_split_into_shared_and_different(tmp_path):
    first = arguments()
    other = synthetic(config=first["config"] | {"rows": 16}, config_hash="ffffffffffff")
    own = body(page([synthetic(), other], tmp_path))
    table, shared = own[own.index("Configuration and versions") :].split("<dl>")[:2]
    assert "ffffffffffff" in table
    assert re.search(r">rows</td><td>32</td><td>16</td>", table)
    assert "tile keys" not in table
    assert re.search(r">tile keys</dt><dd>64</dd>", shared)


def test_every_name_is_explained(tmp_path):
    own = body(page([synthetic()], tmp_path))
    names = re.findall(r'<td title="([^"]*)">', own)
    assert len(names) > 30
    assert all(len(name) > 8 for name in names)
    assert "Useful multiply-accumulates over all slots from start to done; 1 is full." in names


def test_labels_are_made_different():
    reports = [synthetic(label=label) for label in ("", "a", "", "b", "attention on u55c #1")]
    assert labels(reports) == [
        "attention on u55c #2",
        "a",
        "attention on u55c #3",
        "b",
        "attention on u55c #1",
    ]


def test_runs_without_a_label_have_the_name_of_their_file():
    reports = [synthetic(label=label) for label in ("", "a", "b", "a")]
    files = [Path(f"{name}.json") for name in ("x", "p", "y", "q")]
    assert [report.label for report in named_by_file(reports, files)] == ["x", "a (p)", "b", "a (q)"]


def test_names_and_a_table_on_request(tmp_path):
    files = [tmp_path / f"{name}.json" for name in ("x", "y")]
    for file, stall in zip(files, (310, 620), strict=True):
        save(synthetic(**arguments(stall_cycles=stall)), file)
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    call("report", *files, "--output", page, "--label", "before", "--label", "after", "--csv", table)
    assert body(page.read_text()).count("before") >= 3
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["run"] for row in rows] == ["before", "after"]
    for row, file in zip(rows, files, strict=True):
        report = load(file)
        assert int(row["cycles.cycles_total"]) == report.cycles.cycles_total
        assert float(row["roofline.cycles_over_bound_ratio"]) == report.roofline.cycles_over_bound_ratio
        assert row["config.rows"] == "32"
    assert "given once for each of the 2 reports" in refused("report", *files, "--label", "one")
    assert "another file than --output" in refused("report", files[0], "-o", page, "--csv", page)


def test_the_share_of_the_board_is_shown_of_the_engine_that_is_installed(tmp_path):
    engine, board = find_engine("attention"), load_board("u55c")
    config = engine.default_config(board)
    digits = config_hash("attention", config, board)
    report = synthetic(config=config_dict(config), config_hash=digits)
    text = body(page([report, synthetic()], tmp_path))
    found = engine.resources(config, board)
    assert f"{found.dsp:,} ({100 * found.dsp / board.user.dsp:.1f} %)" in text
    assert f"{100 * found.dsp / board.user.dsp:.1f} %</div>" in text  # on the first screen
    assert "Resources against the board" not in body(page([synthetic()], tmp_path))


def test_every_colour_that_is_not_of_a_mark_has_its_dark_one(tmp_path):
    text = body(page(several(3), tmp_path))
    for light, dark in DARK.items():
        assert light == light.lower()
        assert f'"{light}": "{dark}"' in text
    style = text[text.index("<style>") : text.index("</style>")]
    assert style.count("prefers-color-scheme: dark") == 1
    rules = style[style.index("* { box-sizing") :]
    assert not re.search(r": *(white|#[0-9a-f]{3,6})\b", rules), "a colour that the dark page would keep"


def test_refuses_no_report_and_an_unwritable_place(tmp_path):
    with pytest.raises(InputError, match=r"^reports must be at least one, not 0$"):
        render([], tmp_path / "page.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="output file must be writable"):
        render([synthetic()], tmp_path / "file" / "page.html")


# Charts ---------------------------------------------------------------------------------------------------


def runs(count):
    reports = several(count)
    return list(zip(labels(reports), reports, strict=True))


def test_cycle_bars_are_whole():
    shown = runs(7)
    figure = charts.cycle_breakdown(shown)
    assert {trace.name for trace in figure.data} == {
        "busy",
        "stall: keys",
        "stall: output",
        "stall: scores",
        "idle",
    }
    for number in range(7):
        assert sum(trace.x[number] for trace in figure.data) == pytest.approx(100)


def test_prediction_shows_bound_below_simulated():
    figure = charts.predicted_cycles(runs(5))
    predicted, simulated, bound = figure.data
    assert all(b <= s for b, s in zip(bound.x, simulated.x, strict=True))
    assert predicted.text[0].endswith(" %")
    assert figure.layout.xaxis.type is None
    assert charts.predicted_cycles(runs(60)).layout.xaxis.type == "log"


def test_roofline_points_lie_under_their_roofs():
    shown = runs(5)
    figure = charts.roofline(shown)
    roofs = [trace for trace in figure.data if trace.mode == "lines"]
    points = [trace for trace in figure.data if trace.mode == "markers+lines"]
    assert len(roofs) == 1
    assert len(points) == 5
    for trace, (_, report) in zip(points, shown, strict=True):
        ceiling = report.roofline.memory_ceiling_bytes_per_cycle
        for intensity, rate in zip(trace.x, trace.y, strict=True):
            assert rate <= min(report.work.mac_slots_per_cycle, ceiling * intensity)
        assert trace.x[0] <= trace.x[1]


def test_roofline_of_an_engine_that_does_not_multiply():
    prediction = dataclasses.replace(arguments()["prediction"], useful_macs=0, mac_slots_per_cycle=0)
    figure = charts.roofline([("memory only", synthetic(prediction=prediction))])
    assert not figure.data
    assert "No run multiplies" in figure.layout.annotations[0].text


def test_a_page_without_multipliers_says_nothing_of_them(tmp_path):
    prediction = dataclasses.replace(arguments()["prediction"], useful_macs=0, mac_slots_per_cycle=0)
    without, multiplying = synthetic(prediction=prediction, label="moves"), synthetic(label="multiplies")
    own = body(page([without], tmp_path))
    assert "Multiplier" not in own
    assert ">utilization</td>" not in own
    assert "<h2>Roofline" not in own
    assert own.count("Plotly.newPlot(") == 4
    both = body(page([without, multiplying], tmp_path))
    share = f"{100 * multiplying.work.mac_utilization_ratio:.2f} %"
    assert f">utilization</td><td>–</td><td>{share}</td>" in both
    assert f"{100 * multiplying.work.mac_utilization_ratio:.1f} %" in both.split("Multiplier slots")[1][:120]
    assert both.count("Plotly.newPlot(") == 5


def test_a_prediction_that_is_a_lower_bound_says_so(tmp_path):
    bound = synthetic(prediction=dataclasses.replace(arguments()["prediction"], open_ended=True))
    alone, both = (body(page(runs, tmp_path)) for runs in ([bound], [synthetic(), bound]))
    assert "off the measured cycles; a lower bound, as values of the inputs add to it" in alone
    assert "off the measured cycles; 1 of 2 are lower bounds, as values of the inputs add to it" in both
    cells = {line.label: line.cells for line in lines([synthetic(), bound], SUMMARY)}
    plain, least = cells["cycles, predicted"]
    assert least == f"at least {plain}"
    plain, least = cells["error of the predicted cycles"]
    assert least == f"{plain}, of a lower bound"
    predicted, *_ = charts.predicted_cycles([("plain", synthetic()), ("bound", bound)]).data
    assert [", a lower bound" in text for text in predicted.text] == [False, True]


def test_bytes_off_the_prediction_are_told(tmp_path):
    assert "the compulsory bytes, as predicted" in body(page([synthetic()], tmp_path))
    prediction = arguments()["prediction"]
    wrong = dataclasses.replace(prediction, read_bytes={"all": prediction.read_bytes_total + 64})
    own = body(page([synthetic(), synthetic(prediction=wrong)], tmp_path))
    assert "the compulsory bytes, 64 off the prediction" in own


def test_a_large_configuration_is_cut_short(tmp_path):
    own = body(page([synthetic(config={"program": list(range(1000)), "rows": 4})], tmp_path))
    assert "4,890 characters" in own
    assert "997, 998, 999" not in own


def test_energy_bars_are_stacked_sources_with_the_range():
    reports = several(3)
    figure = charts.energy_breakdown(list(zip(labels(reports), reports, strict=True)))
    *bars, whisker = figure.data
    for number, report in enumerate(reports):
        energy = report.energy
        assert sum(bar.x[number] for bar in bars) == pytest.approx(1e-6 * energy.energy_total_picojoules)
        ends = (whisker.x[number] - whisker.error_x.arrayminus[number], energy.energy_low_picojoules)
        assert ends[0] == pytest.approx(1e-6 * ends[1])
    assert figure.layout.barmode == "stack"
    assert {bar.name for bar in bars} >= {"macs", "logic", "memory read", "leakage"}


def test_runs_without_energy_are_left_out_of_its_chart(tmp_path):
    without = synthetic(activity=None, label="old")
    figure = charts.energy_breakdown([("old", without), ("new", synthetic())])
    assert all(list(bar.y) == ["new"] for bar in figure.data)
    assert (
        "Energy by source"
        not in body(page([without], tmp_path)).split("<h2>Glossary")[0].split("glossary")[0]
    )


def test_traffic_menu_shows_one_run_at_a_time():
    shown = runs(3)
    figure = charts.channel_traffic(shown)
    buttons = figure.layout.updatemenus[0].buttons
    assert len(buttons) == 3
    for number, (button, (_, report)) in enumerate(zip(buttons, shown, strict=True)):
        visible = button.args[0]["visible"]
        traces = [trace for trace, on in zip(figure.data, visible, strict=True) if on]
        assert len(traces) == 3
        assert sum(sum(trace.y) for trace in traces) == report.traffic.bus_bytes
        assert [trace.visible for trace in figure.data[3 * number : 3 * number + 3]] == [number == 0] * 3
    assert not charts.channel_traffic(shown[:1]).layout.updatemenus


@pytest.mark.sample(1)
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_draws_every_chart(tmp_path, width):
    reports = [
        dataclasses.replace(report, label=f"run {n} of a long name") for n, report in enumerate(several(4))
    ]
    page(reports, tmp_path)
    drawn = drawn_page(tmp_path / "page.html", tmp_path / "profile", width=width)
    assert drawn.count('class="main-svg"') >= 8
    assert drawn.count('class="barlayer') >= 3
    # Names of bars are in several lines where there is little room.
    assert ('"run 0 of a&lt;br&gt;long name  "' in drawn) == (width == 400)
