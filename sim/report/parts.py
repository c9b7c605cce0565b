"""What all pages are made of: templates, headline figures, and charts that need no file beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jinja2
import plotly.graph_objects as go


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A headline figure."""

    label: str
    figure: str
    note: str
    good: bool | None = None


def environment() -> jinja2.Environment:
    """Give the environment of the page templates."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def chart(figure: go.Figure, name: str, *, zoom: bool = False) -> str:
    """Give a figure as part of a page.

    Parameters
    ----------
    figure : go.Figure
    name : str
        Unique on the page.
    zoom : bool
        Whether the reader can zoom with the wheel and reset the view.
    """
    config: dict[str, object] = {"displayModeBar": False, "responsive": True}
    if zoom:
        config |= {
            "displayModeBar": True,
            "displaylogo": False,
            "scrollZoom": True,
            "modeBarButtons": [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
        }
    html: str = figure.to_html(full_html=False, include_plotlyjs=False, div_id=f"chart-{name}", config=config)
    return html
