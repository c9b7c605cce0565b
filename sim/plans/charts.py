"""Two figures of a plan's page: the graph by step, and traffic over scratchpad size."""

from collections.abc import Mapping, Sequence
from html import escape
from operator import attrgetter

import plotly.graph_objects as go

from sim.plans.curve import Curve
from sim.plans.facts import CurvePoint, Delivery, Edge, PlanFacts
from sim.report.style import INK, RUNS, byte_axis, hover, styled
from sim.report.text import sized

AVOIDABLE_READ, AVOIDABLE_WRITE = "#e07b39", "#b3362f"
_size = attrgetter("scratchpad_bytes")
#: Names listed in a hover text; the rest are counted.
_LISTED = 6
#: Steps from which on operators are drawn smaller.
_CROWDED = 150
DELIVERIES = {Delivery.STAYED: "#a9c4cb", Delivery.FETCHED: AVOIDABLE_READ, Delivery.STREAMED: "#d9a521"}


def listed(names: Sequence[str]) -> str:
    """List the first few names, and count the rest."""
    shown = ", ".join(escape(name) for name in names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def step_axis(steps: int) -> dict[str, object]:
    """Return an axis of steps with whole-numbered ticks."""
    return {"tickformat": "d", "title": "step"} | ({"dtick": 1} if steps <= 24 else {})


def graph_by_step(facts: PlanFacts) -> go.Figure:
    """Draw the operators in order of execution, and the delivery of each tensor from one to the next."""
    figure = go.Figure()
    lanes = _lanes(facts)
    for delivery, colour in DELIVERIES.items():
        x: list[float | None] = []
        y: list[float | None] = []
        for edge in facts.edges:
            if edge.delivery is delivery:
                points = _curve(edge, lanes)
                x += [point[0] for point in points] + [None]
                y += [point[1] for point in points] + [None]
        if x:
            line = {"color": colour, "width": 1.4 if delivery is Delivery.STAYED else 1.8}
            figure.add_scatter(x=x, y=y, mode="lines", name=delivery.value, line=line, hoverinfo="skip")
    kinds = list(dict.fromkeys(operator.kind for operator in facts.operators))
    kinds.sort(key=lambda kind: -sum(operator.kind == kind for operator in facts.operators))
    for number, kind in enumerate(kinds):
        steps = [step for step, operator in enumerate(facts.operators) if operator.kind == kind]
        figure.add_scatter(
            x=steps,
            y=[lanes[step] for step in steps],
            mode="markers",
            name=escape(kind),
            marker={
                "color": RUNS[number] if number < len(RUNS) - 1 else RUNS[-1],
                "symbol": ["square" if facts.operators[step].members else "circle" for step in steps],
                "size": 10 if len(lanes) < _CROWDED else 6,
                "line": {"color": "white", "width": 1},
            },
            **hover([_step_text(facts, step) for step in steps]),
            showlegend=number < len(RUNS) - 1,
        )
    styled(figure, height=min(900, 200 + 26 * (max(lanes) + 1)))
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(
        **step_axis(len(lanes)), range=[-0.8, len(lanes) - 0.2], showgrid=False, zeroline=False
    )
    figure.update_yaxes(
        visible=False, range=[max(lanes) + 0.7, -0.7], fixedrange=len(lanes) < _CROWDED, automargin=False
    )
    return figure


def _lanes(facts: PlanFacts) -> list[int]:
    """Return each step's lane: that of an operand with its last use here, else the first free one."""
    free_from: list[int] = []
    lane_of: list[int] = []
    for step, operator in enumerate(facts.operators):
        makers = [facts.made_at[name] for name in operator.inputs if name in facts.made_at]
        ending = [lane_of[maker] for maker in makers if free_from[lane_of[maker]] <= step]
        open_lanes = [lane for lane, free in enumerate(free_from) if free <= step]
        lane = min(ending or open_lanes or [len(free_from)])
        last = max((use for name in operator.outputs for use in facts.used_at[name]), default=step)
        if lane == len(free_from):
            free_from.append(last)
        free_from[lane] = last
        lane_of.append(lane)
    return lane_of


def _curve(edge: Edge, lanes: Sequence[int]) -> list[tuple[float, float]]:
    """Return a line that leaves and enters horizontally and changes lanes right after it leaves."""
    start, end = (edge.made, lanes[edge.made]), (edge.used, lanes[edge.used])
    if start[1] == end[1] and edge.used - edge.made == 1:
        return [start, end]
    if start[1] > end[1]:
        return [start, (edge.used - 0.5, start[1]), end]
    # A skip connection runs beside its lane, not through its operators.
    level = end[1] + (0.32 if edge.used - edge.made > 1 else 0)
    return [start, (edge.made + 0.35, level), (edge.used - 0.35, level), end]


def _step_text(facts: PlanFacts, step: int) -> str:
    operator, planned = facts.operators[step], facts.plan.steps[step]
    lines = [
        f"step {step}: <b>{escape(operator.name)}</b> ({escape(operator.kind)}, {planned.mode.value})",
        f"at least {planned.compute_cycles:,} cycles, {operator.macs:,} MACs",
        f"reads {listed(operator.inputs)}",
        f"writes {listed(operator.outputs)}",
        f"{sized(facts.bytes_in_use[step])} of the scratchpad in use",
    ]
    if operator.members:
        lines.append(f"members {listed([member.name for member in operator.members])}")
    if operator.fused:
        lines.append(f"with {listed(operator.fused)}")
    return "<br>".join(lines)


def traffic_curve(curve: Curve) -> go.Figure:
    """Draw avoidable traffic over scratchpad size: other plans, the page's own plan, and marked sizes."""
    here, marks = curve.here, curve.budgets
    points = curve.points
    methods = dict.fromkeys(name for point in points for name in point.baselines)
    figure = go.Figure()
    for number, method in enumerate(methods):
        known = [point for point in points if method in point.baselines]
        figure.add_scatter(
            x=list(map(_size, known)),
            y=[point.baselines[method] for point in known],
            mode="lines+markers",
            name=escape(method),
            line={"color": RUNS[(number + 3) % len(RUNS)], "width": 1.2, "dash": "dot"},
            marker={"size": 5},
            **hover([_point_text(point, method) for point in known]),
        )
    figure.add_scatter(
        x=list(map(_size, points)),
        y=[point.bound_avoidable_bytes for point in points],
        mode="lines",
        name="proven bound",
        line={"color": INK, "width": 1.2, "dash": "dash"},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=list(map(_size, points)),
        y=[point.avoidable_bytes for point in points],
        mode="lines+markers",
        name="planned",
        line={"color": RUNS[0], "width": 2.4},
        marker={"size": 7},
        **hover([_point_text(point, "") for point in points]),
    )
    figure.add_scatter(
        x=[here.scratchpad_bytes],
        y=[here.avoidable_bytes],
        mode="markers",
        name="this plan",
        marker={"symbol": "star", "size": 15, "color": RUNS[1], "line": {"color": "white", "width": 1}},
        hoverinfo="skip",
    )
    figure = styled(figure, height=400)
    widest = max([point.scratchpad_bytes for point in (*points, here)] + list(marks.values()))
    for names, size_bytes in _joined_labels(marks, widest / 20):
        figure.add_vline(
            x=size_bytes,
            line={"color": INK, "width": 1, "dash": "dot"},
            annotation_text=escape(", ".join(names)),
            annotation_position="top right" if size_bytes < 0.8 * widest else "top left",
        )
    highest = max(max([point.avoidable_bytes, *point.baselines.values()]) for point in (*points, here))
    figure.update_xaxes(**byte_axis(1.05 * widest), range=[0, 1.05 * widest], title="scratchpad")
    top = 1.06 * max(highest, 1024)
    figure.update_yaxes(**byte_axis(top), range=[-0.02 * top, top], title="avoidable traffic")
    return figure


def _joined_labels(marks: Mapping[str, int], least: float) -> list[tuple[list[str], int]]:
    """Join the names of sizes closer than ``least``, a label's width; each group is at its smallest size."""
    groups: list[tuple[list[str], int]] = []
    for name, size_bytes in sorted(marks.items(), key=lambda mark: mark[1]):
        if groups and size_bytes - groups[-1][1] < least:
            groups[-1][0].append(name)
        else:
            groups.append(([name], size_bytes))
    return groups


def _point_text(point: CurvePoint, method: str) -> str:
    moved = point.baselines[method] if method else point.avoidable_bytes
    claim = "" if method or not point.claim else f"<br>{escape(point.claim)}"
    return (
        f"{escape(method) or 'planned'}<br>{moved:,} avoidable bytes "
        f"in {sized(point.scratchpad_bytes)}{claim}"
    )
