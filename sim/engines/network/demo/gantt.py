"""Chart of the kernel's cores over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from hw.network.commands import Core
from sim.engines.network.demo.activity import Activity, Command, joined, runs
from sim.engines.network.demo.roles import Part, Role
from sim.report.style import FAINT, IDLE, INK, hover, styled
from sim.report.text import percent

CORES = {Core.MATRIX: "matrix array", Core.VECTOR: "vector unit", Core.ATTENTION: "attention unit"}
_WEIGHTS, _READS, _WRITES = "weights in", "tensors in", "tensors out"
#: Rows from top to bottom.
ROWS = (_READS, _WEIGHTS, *CORES.values(), _WRITES)
COLOURS: dict[str, str] = {
    Role.EMBEDDING: "#6b7785",
    Role.QUERIES: "#5f6caf",
    Role.ATTENTION: "#c8504b",
    Role.JOINING: "#8e5572",
    Role.WIDENING: "#2a7f8e",
    Role.NARROWING: "#7a8f3c",
    Role.NORM: "#e9b44c",
    Role.MEAN: "#e07b39",
}
_TRANSFER, _PROGRAM = "transfer", "program"
#: Parts of a chart's width, each with a bar as high as the share of cycles at work; height of all.
_PARTS, _HEIGHT = 640, 0.74
#: Opacity of the span of a command, behind its bars.
_PALE = 0.22


@dataclass(frozen=True, kw_only=True)
class _Span:
    """Cycles of a row, from ``begin`` to ``end``, at work in those of ``busy``."""

    row: str
    begin: int
    end: int
    busy: NDArray[np.bool_]  #: For each cycle of the launch.
    story: str


def gantt(
    activity: Activity,
    parts: Mapping[str, Part],
    *,
    load_cycles: int,
    layer: int | None = None,
) -> go.Figure:
    """Draw the cores and transfers of a launch over its cycles.

    ``load_cycles``: of loading the program, from the start. ``layer``: the only one whose cycles are shown,
    with each command of its own; without it commands of an operator are joined.
    """
    begin, end = (0, activity.cycles) if layer is None else span_of(activity, parts, layer)
    figure = go.Figure()
    found = _transfers(activity, load_cycles)
    for each in joined(activity.commands) if layer is None else activity.commands:
        span = _Span(
            row=CORES[each.core],
            begin=each.begin,
            end=each.end,
            busy=activity.working[each.core],
            story=_story(each, parts),
        )
        found.setdefault(part_of(parts, each).role, []).append(span)
    colours: dict[str, str] = {_PROGRAM: IDLE, _TRANSFER: INK, **COLOURS}
    for name, colour in colours.items():
        inside = [span for span in found.get(name, []) if span.end > begin and span.begin < end]
        if inside:
            _bars(figure, name, colour, inside, width=max(1, (end - begin) // _PARTS))
    styled(figure, height=400)
    figure.update_layout(
        barmode="overlay",
        margin_t=112,
        hovermode="closest",
        legend={"y": 1.14, "font": {"size": 12}, "entrywidth": 190},
    )
    figure.update_xaxes(title="cycles since the start", range=[begin, end], tickformat=",", zeroline=False)
    figure.update_yaxes(
        tickmode="array",
        tickvals=[*range(len(ROWS))],
        ticktext=ROWS,
        range=[len(ROWS) - 0.5, -0.5],
        fixedrange=True,
        showgrid=False,
        zeroline=False,
    )
    if layer is None:
        _mark_layers(figure, activity, parts)
    return figure


def part_of(parts: Mapping[str, Part], command: Command) -> Part:
    """Return the part of a command's operator; of operators that are computed as one, of the first."""
    return parts[command.operator.split()[0]]


def span_of(activity: Activity, parts: Mapping[str, Part], layer: int) -> tuple[int, int]:
    """Return the first cycle of a layer's commands, and the first cycle behind them."""
    own = [each for each in activity.commands if part_of(parts, each).layer == layer]
    return min(each.begin for each in own), max(each.end for each in own)


def _transfers(activity: Activity, load_cycles: int) -> dict[str, list[_Span]]:
    """Return the transfers at memory ports; the program is read before the launch's first command."""
    loading = np.arange(activity.cycles) < load_cycles
    found: dict[str, list[_Span]] = {}
    for name, row, busy in (
        (_PROGRAM, _READS, activity.reads & loading),
        (_TRANSFER, _READS, activity.reads & ~loading),
        (_TRANSFER, _WEIGHTS, activity.weights),
        (_TRANSFER, _WRITES, activity.writes),
    ):
        for begin, end in runs(busy):
            moved = percent(float(busy[begin:end].mean()), places=0)
            when = f"{end - begin:,} cycles from {begin:,} on"
            story = f"<b>{row}</b>: {name}<br>{when}<br>a word in {moved} of them"
            span = _Span(row=row, begin=begin, end=end, busy=busy, story=story)
            found.setdefault(name, []).append(span)
    return found


def _bars(figure: go.Figure, name: str, colour: str, spans: Sequence[_Span], *, width: int) -> None:
    """Draw spans pale, and before them the share of cycles at work in each part of ``width`` cycles."""
    pale = [(span, span.begin, span.end, 1.0) for span in spans]
    solid = [
        (span, begin, end, float(span.busy[begin:end].mean()))
        for span in spans
        for begin, end in pairwise([*range(span.begin, span.end, width), span.end])
    ]
    for bars, opacity in ((pale, _PALE), ([bar for bar in solid if bar[3]], 1.0)):
        # The base of all bars of a row is a line.
        places = [ROWS.index(span.row) + _HEIGHT / 2 * (1 - share) for span, _, _, share in bars]
        figure.add_bar(
            orientation="h",
            y=places,
            width=[_HEIGHT * share for *_, share in bars],
            base=[begin for _, begin, _, _ in bars],
            x=[end - begin for _, begin, end, _ in bars],
            name=name,
            legendgroup=name,
            showlegend=opacity == 1,
            marker={"color": colour, "opacity": opacity, "line": {"width": 0}},
            **hover([span.story for span, *_ in bars]),
        )


def _mark_layers(figure: go.Figure, activity: Activity, parts: Mapping[str, Part]) -> None:
    """Draw a line where each layer begins, and its number above."""
    for layer in sorted({each.layer for each in parts.values()} - {0}):
        begin, _ = span_of(activity, parts, layer)
        figure.add_vline(x=begin, line={"color": FAINT, "width": 1}, layer="below")
        figure.add_annotation(
            x=begin,
            y=1,
            yref="paper",
            text=f"layer {layer}",
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
            font={"size": 11},
        )


def _story(command: Command, parts: Mapping[str, Part]) -> str:
    part = part_of(parts, command)
    where = f"layer {part.layer}: " if part.layer else ""
    return "<br>".join(
        (
            f"<b>{where}{part.role}</b>, {CORES[command.core]}",
            escape(command.operator),
            f"{command.cycles:,} cycles from {command.begin:,} on",
            f"at work in {percent(command.working / max(command.cycles, 1), places=0)} of them",
        )
    )
