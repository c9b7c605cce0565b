"""The page of a plan: self-contained, and its figures those of the plan."""

import dataclasses
import itertools
import re

import pytest
from plotly.offline import get_plotlyjs

from hw.errors import InputError
from hw.scheduler.plan.plan import Direction
from hw.scheduler.plan.problem import Problem
from sim.plans.charts import graph_by_step, listed, traffic_curve
from sim.plans.curve import Curve
from sim.plans.facts import CurvePoint, Delivery, PlanFacts, TransferReason
from sim.plans.map import address_map
from sim.plans.page import render_plan
from sim.report.style import byte_axis
from sim.report.text import sized
from tests.support.planner.graphs import pipelined_graph, random_graph
from tests.support.planner.naive_plan import naive_plan

STREAMS = (("conv1+conv2", "a"), ("tail", "b"))
POINTS = tuple(
    CurvePoint(
        scratchpad_bytes=size, avoidable_bytes=moved, bound_avoidable_bytes=moved // 2, claim="bound",
        baselines={"Belady": 1000} if size > 4000 else {},
    )
    for size, moved in ((3072, 9000), (5000, 700), (8192, 0))
)  # fmt: skip
CURVE = Curve(
    points=POINTS, here=CurvePoint(scratchpad_bytes=4096, avoidable_bytes=800), budgets={"M_R": 3072}
)


@pytest.fixture(scope="module")
def grouped():
    return naive_plan(pipelined_graph(), 4096, streams=STREAMS)


@pytest.fixture(scope="module")
def spilling():
    graph = random_graph(8, 30)
    room = max(Problem(graph=graph, word_bytes=4).working_set) * 4
    plan = naive_plan(graph, room, word_bytes=4)
    assert plan.totals.avoidable_bytes
    return plan


def rendered(plan, tmp_path, **more):
    path = tmp_path / "plan.html"
    render_plan(plan, path, **more)
    before, after = path.read_text().split(get_plotlyjs())
    return before + after


def test_page_holds_everything_itself(grouped, tmp_path):
    own = rendered(grouped, tmp_path, curve=CURVE)
    assert not re.search(r"""(src|href)=["']|@import|url\(""", own)
    assert own.count("Plotly.newPlot(") == 3
    assert "pipelined in 4 KiB" in own
    assert "bound 0 bytes, not proven" in own
    for figure in (grouped.totals.predicted_cycles, grouped.totals.avoidable_bytes):
        assert f"{figure:,}" in own
    for step in grouped.steps:
        assert f'<td class="text">{step.operator}</td>' in own


def test_page_is_the_same_every_time(spilling, tmp_path):
    assert rendered(spilling, tmp_path) == rendered(spilling, tmp_path)


def test_without_other_plans_there_is_no_curve(spilling, tmp_path):
    own = rendered(spilling, tmp_path)
    assert own.count("Plotly.newPlot(") == 2
    assert "against scratchpad size" not in own


def test_a_proven_plan_stands_out(spilling, tmp_path):
    moved = spilling.totals.avoidable_bytes
    certificate = dataclasses.replace(
        spilling.certificate,
        claim="optimal",
        bound_avoidable_bytes=moved,
        order_bound_avoidable_bytes=moved,
    )
    own = rendered(dataclasses.replace(spilling, certificate=certificate), tmp_path)
    assert own.count('class="tile good"') == 2
    half = dataclasses.replace(certificate, claim="optimal for this order", bound_avoidable_bytes=0)
    own = rendered(dataclasses.replace(spilling, certificate=half), tmp_path)
    assert 'class="tile good"' not in own
    assert "no order moves less; optimal for this order" in own


def test_names_cannot_break_the_page(tmp_path):
    evil = "</script><b>&"
    graph = pipelined_graph()
    tensors = tuple(
        dataclasses.replace(tensor, name=evil if tensor.name == "x" else tensor.name)
        for tensor in graph.tensors
    )
    operators = tuple(
        dataclasses.replace(
            operator,
            name=operator.name + evil,
            kind=operator.kind + evil,
            inputs=tuple(evil if name == "x" else name for name in operator.inputs),
            accesses={evil if name == "x" else name: value for name, value in operator.accesses.items()},
        )
        for operator in graph.operators
    )
    changed = dataclasses.replace(graph, name=evil, tensors=tensors, operators=operators)
    own = rendered(naive_plan(changed, 8192), tmp_path, curve=dataclasses.replace(CURVE, budgets={evil: 100}))
    assert "</script><b>" not in own


def test_unwritable_place(spilling, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="output file must be writable"):
        render_plan(spilling, tmp_path / "file" / "plan.html")


# Charts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grouped", "spilling"])
def test_the_map_shows_every_stay_window_and_move(request, name):
    plan = request.getfixturevalue(name)
    figure = address_map(PlanFacts(plan))
    shown = sorted(
        (x - width / 2 + 0.5, x + width / 2 - 0.5, base, height)
        for trace in figure.data
        if trace.type == "bar" and trace.yaxis == "y" and trace.name != "only moving"
        for x, width, base, height in zip(trace.x, trace.width, trace.base, trace.y, strict=True)
    )
    wanted = [(e.first_step, e.last_step, e.address, e.size_bytes) for e in plan.episodes]
    wanted += [(s.step, s.step, s.address, s.window_bytes) for s in plan.streams]
    wanted += [(f.step, f.step, f.address, f.size_bytes) for f in plan.fifos]
    assert shown == sorted(wanted)
    marks = sum(len(trace.x) for trace in figure.data if trace.type == "scatter" and trace.yaxis == "y")
    assert marks == len(plan.transfers)
    moved = [trace for trace in figure.data if trace.yaxis == "y2"]
    up, down = (sum(abs(y) for t in moved for y in t.y if (y > 0) is above) for above in (True, False))
    assert (up, down) == (plan.totals.offchip_read_bytes, plan.totals.offchip_write_bytes)


def test_reasons_tell_compulsory_from_avoidable(spilling):
    facts = PlanFacts(spilling)
    moved = {why: sum(facts.bytes_by_step(why)) for why in TransferReason}
    assert moved[TransferReason.REFETCH] + moved[TransferReason.SPILL] == spilling.totals.avoidable_bytes
    assert (
        moved[TransferReason.FIRST_FETCH] + moved[TransferReason.OUTPUT] == spilling.totals.compulsory_bytes
    )
    assert max(facts.bytes_in_use) == spilling.totals.peak_bytes


def test_early_fetches_and_late_writes_are_hatched(spilling):
    read = next(
        index
        for index, t in enumerate(spilling.transfers)
        if t.direction is Direction.READ and t.start_step > 0
    )
    transfer = spilling.transfers[read]
    episodes, transfers = list(spilling.episodes), list(spilling.transfers)
    episode = episodes[transfer.episode]
    episodes[transfer.episode] = dataclasses.replace(episode, first_step=episode.first_step - 1)
    transfers[read] = dataclasses.replace(transfer, start_step=transfer.start_step - 1)
    plan = dataclasses.replace(spilling, episodes=tuple(episodes), transfers=tuple(transfers))
    facts = PlanFacts(plan)
    assert facts.early_fetches == PlanFacts(spilling).early_fetches + 1 == 1
    hatched = next(trace for trace in address_map(facts).data if trace.name == "only moving")
    assert (hatched.x, hatched.base) == ((episode.first_step - 1,), (episode.address,))
    assert all(trace.name != "only moving" for trace in address_map(PlanFacts(spilling)).data)


def test_every_use_is_a_line_of_its_kind(grouped):
    facts = PlanFacts(grouped)
    assert {(edge.tensor, edge.delivery) for edge in facts.edges} == {
        ("a", Delivery.STREAMED),
        ("skip", Delivery.STAYED),
        ("b", Delivery.STREAMED),
    }
    figure = graph_by_step(facts)
    lines = {trace.name: sum(x is None for x in trace.x) for trace in figure.data if trace.mode == "lines"}
    assert lines == {"stayed on chip": 1, "streamed from memory": 2}
    nodes = [trace for trace in figure.data if trace.mode == "markers"]
    assert sorted(x for trace in nodes for x in trace.x) == [0, 1, 2]


def test_operators_in_one_lane_do_not_hide_what_is_alive(spilling):
    facts = PlanFacts(spilling)
    figure = graph_by_step(facts)
    nodes = [trace for trace in figure.data if trace.mode == "markers"]
    lane = {x: y for trace in nodes for x, y in zip(trace.x, trace.y, strict=True)}
    for edge in facts.edges:
        between = [lane[step] for step in range(edge.made + 1, edge.used)]
        assert lane[edge.made] not in between


def test_the_curve_goes_through_all_plans_of_its_kind():
    figure = traffic_curve(CURVE)
    by_name = {trace.name: trace for trace in figure.data}
    assert by_name["planned"].x == (3072, 5000, 8192)
    assert by_name["planned"].y == (9000, 700, 0)
    assert by_name["proven bound"].x == (3072, 5000, 8192)
    assert by_name["Belady"].x == (5000, 8192)
    assert by_name["this plan"].x == (4096,)
    assert by_name["this plan"].y == (800,)
    assert "M_R" in figure.layout.annotations[0].text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1, "1 B"), (1000, "1,000 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1005568, "982 KiB"),
     (1500000, "1.43 MiB"), (3 << 30, "3 GiB"), (5 << 40, "5,120 GiB")],
)  # fmt: skip
def test_sizes(size, text):
    assert sized(size) == text


@pytest.mark.parametrize("most", [1, 31, 4096, 919552, 5e9])
def test_ticks_are_round_and_few(most):
    axis = byte_axis(most)
    ticks = axis["tickvals"]
    assert 1 <= len(ticks) <= 9
    assert ticks[0] == 0
    assert all(tick <= most for tick in ticks)
    steps = {after - before for before, after in itertools.pairwise(ticks)}
    assert all(step & (step - 1) == 0 for step in steps)
    both = byte_axis(most, both_ways=True)["tickvals"]
    assert both == [-tick for tick in reversed(both)]


def test_long_lists_are_counted():
    assert listed(["a", "<b>"]) == "a, &lt;b&gt;"
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"


def test_marks_of_nearly_equal_sizes_share_a_label():
    marks = {"M_P": 9000, "M_R": 1000, "M_H": 8800}
    notes = traffic_curve(dataclasses.replace(CURVE, budgets=marks)).layout.annotations
    assert [note.text for note in notes] == ["M_R", "M_H, M_P"]
    assert [note.xanchor for note in notes] == ["left", "right"]
