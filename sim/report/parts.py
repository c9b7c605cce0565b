"""Parts of all pages: templates, headline figures, and charts embedded in the page itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from sim.host.files import write_text
from sim.host.template import filled
from sim.report.style import DARK, FAINT, FONT, INK


@dataclass(frozen=True)
class Headline:
    """A headline figure."""

    label: str
    figure: str
    note: str
    good: bool | None = None


def exact_tile(exact: Iterable[bool | None], engine: str = "") -> Headline:
    """Return the headline of runs compared with the golden model; None stands for a control-only run."""
    given = list(exact)
    found = [value for value in given if value is not None]
    label = f"{engine}: equals the golden model" if engine else "Equals the golden model"
    if not found:
        return Headline(label, "not compared", "control only, without data")
    note = "runs, bit for bit"
    if len(found) < len(given):
        note += f"; {len(given) - len(found)} of control only, without data"
    return Headline(label, f"{sum(found)} of {len(found)}", note, all(found))


def write_page(template: str, path: Path, *, charts: bool = True, **content: Any) -> None:
    """Write a self-contained page: a template of ``templates`` filled with ``content``, and the library of
    charts if it has any. Raises `InputError` when the path cannot be written.
    """
    source = Path(__file__).parent / "templates" / template
    library = get_plotlyjs() if charts else ""
    write_text(
        path, filled(source, html=True, plotly=library, font=FONT, ink=INK, faint=FAINT, dark=DARK, **content)
    )


def chart(figure: go.Figure, name: str, *, zoom: bool = False, image: bool = False) -> str:
    """Return a figure as part of a page; ``name`` is unique on the page.

    ``zoom`` lets the reader zoom, pan and save an image (PNG), ``image`` the latter alone.
    """
    config: dict[str, object] = {"displayModeBar": False, "responsive": True}
    if zoom or image:
        buttons = ["zoom2d", "pan2d", "resetScale2d"] if zoom else []
        config |= {
            "displayModeBar": True,
            "displaylogo": False,
            "scrollZoom": zoom,
            "modeBarButtons": [[*buttons, "toImage"]],
            "toImageButtonOptions": {"format": "png", "scale": 2, "filename": f"loomwork-{name}"},
        }
    html: str = figure.to_html(full_html=False, include_plotlyjs=False, div_id=f"chart-{name}", config=config)
    return html
