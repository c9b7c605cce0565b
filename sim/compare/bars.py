"""Charts of a comparison: a bar for each method at each work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TypeVar

import plotly.graph_objects as go

from sim.report.style import RUNS, beside, styled

Figures = TypeVar("Figures")


def method_bars(
    figures: Iterable[tuple[str, str, str, Figures]],
    methods: Sequence[str],
    value: Callable[[Figures], float],
    text: Callable[[Figures], str],
    *,
    height: int,
    **axis: object,
) -> go.Figure:
    """Draw a bar for each method at each work.

    ``figures``: method, work, source and figures of each bar. ``value``, ``text``: height of a bar, and the
    words beside the method when it is pointed at. ``height``: of the chart, in pixels. ``axis``: of values.
    """
    bars = list(figures)
    figure = go.Figure()
    for number, method in enumerate(methods):
        found = [each for each in bars if each[0] == method]
        figure.add_bar(
            x=[escape(work) for _, work, _, _ in found],
            y=[value(each) for *_, each in found],
            name=escape(method),
            marker={"color": RUNS[number]},
            customdata=[f"{escape(method)}, {source}<br>{text(each)}" for _, _, source, each in found],
            hovertemplate="%{x}<br>%{customdata}<extra></extra>",
        )
    figure.update_yaxes(**axis)
    return beside(styled(figure, height=height), top=20).update_layout(barmode="group")
