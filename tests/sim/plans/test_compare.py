"""The comparison of plans with baselines: its arithmetic, its table, its file and its page."""

import dataclasses
import json
import re

import pytest
from plotly.offline import get_plotlyjs

from hw.errors import InputError
from sim.host.console import console
from sim.plans.compare import PlanComparison, plan_tables, rows_of
from sim.plans.compare_page import COMPARISON, savings, traffic
from sim.plans.rows import COSMA, FULL, GREEDY, IDEAL, WHOLE, PlanFigures, PlanRow


def planned(moved=20, **more):
    given = {
        "avoidable_bytes": moved,
        "claim": "optimal",
        "bound_avoidable_bytes": moved,
        "predicted_cycles": 9,
        "seconds": 1.5,
    }
    return PlanFigures(**given | more)


def row(graph="g", budget="M_H", whole=20, full=10, cosma=100, ideal=40, greedy=50, **more):
    given = {COSMA: cosma, IDEAL: ideal, GREEDY: greedy}
    return PlanRow(
        graph=graph,
        budget=budget,
        scratchpad_bytes=4096,
        baselines={name: value for name, value in given.items() if value is not None},
        full=planned(full, **more),
        whole=None if whole is None else planned(whole, **more),
    )


@pytest.fixture
def comparison():
    unproven = {"claim": "bound 7 bytes, not proven", "bound_avoidable_bytes": 7}
    return PlanComparison(
        (
            row("a"),
            row("b", whole=10, full=0, cosma=50, ideal=20),
            row("c", whole=0, full=0, cosma=0, ideal=0),
            row("a", "0.5M_R", None, 30, None, None, 60, **unproven),
            row("b", "0.5M_R", None, 90, None, None, 60, seconds=12.25),
        )
    )


def test_means_are_over_rows_with_something_to_save(comparison):
    whole, full, low = comparison.summaries
    assert (whole.budget, whole.kind, whole.rows, whole.proven) == ("M_H", WHOLE, 3, 3)
    assert (whole.rival, whole.compared, whole.without_traffic) == (COSMA, 2, 1)
    assert whole.mean_reduction == pytest.approx(0.8)
    assert whole.mean_reduction_over_ideal == pytest.approx(0.5)
    assert (full.kind, full.without_traffic) == (FULL, 2)
    assert full.mean_reduction == pytest.approx((0.9 + 1) / 2)
    assert full.mean_reduction_over_ideal == pytest.approx((0.75 + 1) / 2)
    assert (low.kind, low.rival, low.compared) == (FULL, GREEDY, 2)
    assert low.mean_reduction == pytest.approx((0.5 - 0.5) / 2)
    assert (low.proven, low.slowest_seconds, low.mean_reduction_over_ideal) == (1, 12.25, None)


def written(comparison, directory):
    return COMPARISON.write(comparison, directory, {str(row.place): row for row in comparison.rows})


def with_key(given):
    return dataclasses.replace(given, key=f"{given.place}")


def test_json_holds_every_row(comparison, tmp_path):
    written(comparison, tmp_path)
    document = json.loads((tmp_path / "compare.json").read_text())
    assert document["format"] == "loomwork-compare-plan/2"
    keyed = dataclasses.replace(comparison, rows=tuple(map(with_key, comparison.rows)))
    assert (
        tuple(rows_of(json.loads(json.dumps(keyed.document({row.key: row for row in keyed.rows})))).values())
        == keyed.rows
    )
    assert document["summaries"][0]["mean_reduction"] == pytest.approx(0.8)


def test_terminal_tables(comparison):
    out = console()
    with out.capture() as capture:
        out.print(*plan_tables(comparison))
    text = capture.get()
    assert re.search(
        r"a +M_H +4 KiB +20 B +20 B +10 B +100 B +40 B +50 B +80\.0 % +90\.0 % +1\.5 \+ 1\.5 +optimal", text
    )
    assert re.search(r"a +0\.5M_R .* – +– +30 B +– +– +60 B +– +50\.0 % +1\.5 +–", text)
    assert re.search(r"M_H +whole tensors +3 +3 +1 +Belady, first-fit +2 +80\.0 % +50\.0 % +1\.5 s", text)


def test_page_holds_everything_itself(comparison, tmp_path):
    data, page = written(comparison, tmp_path / "new")
    assert len(json.loads(data.read_text())["rows"]) == len(comparison.rows)
    before, after = page.read_text().split(get_plotlyjs())
    own = before + after
    assert not re.search(r"""(src|href)=["']|@import|url\(""", own)
    assert own.count("Plotly.newPlot(") == 3
    assert "<td>12.2</td>" in own or "<td>12.3</td>" in own
    written(comparison, tmp_path / "again")
    assert (tmp_path / "again" / "compare.html").read_bytes() == page.read_bytes()


def test_names_cannot_break_the_page(tmp_path):
    evil = "</script><b>"
    _, page = written(PlanComparison((row(evil, evil, full=20, claim=evil),)), tmp_path)
    assert evil not in page.read_text().replace(get_plotlyjs(), "")


def test_unwritable_place(comparison, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="output file must be writable"):
        written(comparison, tmp_path / "file")


def test_savings_of_each_graph_and_budget(comparison):
    figure = savings(comparison, FULL)
    assert [list(cells) for cells in figure.data[0].z] == [[0.9, 0.5], [1.0, -0.5], [None, None]]
    assert [note.text for note in figure.layout.annotations] == ["nothing to save"]
    whole = savings(comparison, WHOLE)
    assert [list(cells) for cells in whole.data[0].z] == [[0.8, None], [0.8, None], [None, None]]
    assert [note.text for note in whole.layout.annotations] == ["does not fit"] * 2 + ["nothing to save"]
    worse = savings(PlanComparison((row("a", full=500), row("c", full=7, cosma=0, ideal=0))), FULL)
    assert [list(cells) for cells in worse.data[0].z] == [[-1.0], [None]]
    assert worse.data[0].text[0][0] == "-400 % ✓"
    assert [note.text for note in worse.layout.annotations] == ["+7 B"]


def test_traffic_menu_shows_one_budget_at_a_time(comparison):
    figure = traffic(comparison)
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons] == ["M_H", "0.5M_R"]

    def shown(button):
        return {
            trace.name: trace for trace, on in zip(figure.data, button.args[0]["visible"], strict=True) if on
        }

    high, low = shown(buttons[0]), shown(buttons[1])
    assert high[f"plan, {WHOLE}"].y == (20, 20, 0)
    assert high[f"proven bound, {WHOLE}"].y == (20, 20, 0)
    assert low[f"plan, {FULL}"].x == ("a", "b")
    assert low[f"plan, {FULL}"].y == (50, 150)
    assert low[f"plan, {WHOLE}"].y == low[COSMA].y == (None, None)
    assert [bool(trace.visible) for trace in figure.data] == list(buttons[0].args[0]["visible"])
    assert not traffic(PlanComparison((row(),))).layout.updatemenus
