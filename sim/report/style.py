"""Shared parts of all charts: colours, fonts, axes, legends, menus."""

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from sim.report.text import sized

INK = "#1f2933"
FAINT = "#d9dee5"
#: Of text on a mark, whatever the page.
ON_MARK = "#1f2a33"
FONT = "Inter, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"
BUSY = "#2a7f8e"
IDLE = "#c9d1da"
#: Replacements of colours on a dark page; marks keep their colours.
DARK = {
    INK: "#e3e8ed",
    FAINT: "#37424d",
    IDLE: "#56626f",
    "white": "#1a2129",
    "rgba(255,255,255,0.35)": "rgba(18,23,28,0.45)",
    "#5d6d1e": "#a9bd5a",
    # Of Plotly's own template.
    "#2a3f5f": "#e3e8ed",
    "#ebf0f8": "#37424d",
    "#c8d4e3": "#37424d",
}
#: A colour for each of several runs, methods or kinds.
RUNS = (
    *("#2a7f8e", "#e07b39", "#5f6caf", "#c8504b", "#7a8f3c"),
    *("#8e5572", "#e9b44c", "#3d5a80", "#b07f55", "#6b7785"),
)


def styled(figure: go.Figure, *, height: int) -> go.Figure:
    """Return a figure the fonts, colours and margins all have."""
    figure.update_layout(
        template="plotly_white",
        height=max(height, 260),
        font={"family": FONT, "size": 13, "color": INK},
        margin={"l": 70, "r": 24, "t": 56, "b": 60},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        bargap=0.3,
        hoverlabel={"font": {"family": FONT}, "align": "left"},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": IDLE, "activecolor": BUSY},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(automargin=True, gridcolor=FAINT, linecolor=FAINT, title_standoff=12, title_font_size=13)
    return figure


def beside(figure: go.Figure, *, top: int, x: float = 1.01) -> go.Figure:
    """Put the legend of a styled figure beside it, with a margin of ``top`` pixels above."""
    legend = {"orientation": "v", "x": x, "y": 1, "yanchor": "top", "font": {"size": 12}}
    return figure.update_layout(legend=legend, margin_t=top)


def hover(texts: Sequence[Any]) -> dict[str, object]:
    """Return the options of a trace that show a text of its own, in HTML, at each mark."""
    return {"customdata": texts, "hovertemplate": "%{customdata}<extra></extra>"}


def menu(labels: Sequence[str], traces_each: int, **place: object) -> dict[str, Any]:
    """Return a menu that shows the traces of one label (HTML) at a time, ``traces_each`` of them."""
    buttons = [
        {
            "label": label,
            "method": "update",
            "args": [{"visible": [n // traces_each == number for n in range(len(labels) * traces_each)]}],
        }
        for number, label in enumerate(labels)
    ]
    shared = {"x": 0, "xanchor": "left", "yanchor": "bottom", "bgcolor": "white", "bordercolor": FAINT}
    return {"buttons": buttons, **shared, **place, "showactive": True}


def byte_axis(most: float, *, both_ways: bool = False) -> dict[str, object]:
    """Return an axis whose ticks are round numbers of KiB or MiB, at most eight of them to one side."""
    step = 2 ** max(0, math.ceil(math.log2(max(most, 1) / 8)))
    ticks = [step * number for number in range(int(most // step) + 1)]
    if both_ways:
        ticks = [-tick for tick in ticks[:0:-1]] + ticks
        ticks = [tick for tick in ticks if tick % (4 * step) == 0]
    return {
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [sized(abs(tick)) if tick else "0" for tick in ticks],
        "gridcolor": FAINT,
    }


def log_axis(low: float, high: float) -> dict[str, object]:
    """Return a logarithmic axis that labels 1, 2 and 5 of every decade, or only 1 when there are many."""
    ends = [math.log10(low), math.log10(high)]
    return {"type": "log", "range": ends, "dtick": "D2" if ends[1] - ends[0] <= 3 else 1, "tickformat": ","}
