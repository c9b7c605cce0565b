"""The page of a comparison: headline figures, cards with charts or tables, and notes on the formulas."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from sim.compare.table import Columns, Item, cells, titles
from sim.report.parts import Headline, chart, write_page

#: Rules of a page whose rows are measured, predicted or formulas.
BY_SOURCE = """
  td:first-child { min-width: 190px; }
  tr.measured > td { font-weight: 650; color: var(--accent); }
  tr.predicted > td { color: var(--accent); }
  .notes li { margin: 3px 0; }
"""


@dataclass(frozen=True, kw_only=True)
class Card:
    """A section of the page."""

    title: str
    lead: str = ""  #: Explanation, HTML.
    charts: Mapping[str, str] = field(default_factory=dict)  #: HTML by heading, which may be empty.
    columns: Sequence[str] = ()  #: Of the table; empty without one.
    groups: Sequence[tuple[str, Sequence[Sequence[str]]]] = ()  #: Headings, and rows of cells.
    row_class: int | None = None  #: Number of the cell whose text is the row's style.


def chart_card(title: str, lead: str, name: str, figure: go.Figure) -> Card:
    """Return a card with one chart; ``name`` is unique on the page."""
    return Card(title=title, lead=lead, charts={"": chart(figure, name)})


def table_card(title: str, lead: str, columns: Columns[Any], items: Iterable[Any]) -> Card:
    """Return a card with a table of one group."""
    rows = [cells(columns, item) for item in items]
    return Card(title=title, lead=lead, columns=titles(columns), groups=[("", rows)])


def grouped_card(
    title: str,
    columns: Columns[Item],
    items: Iterable[Item],
    heading: Callable[[Item], str],
    *,
    lead: str = "",
    skipped: int = 1,
    row_class: int | None = 1,
) -> Card:
    """Return a card with a table, grouped by a heading that replaces the first ``skipped`` columns."""
    groups: dict[str, list[list[str]]] = {}
    for item in items:
        groups.setdefault(heading(item), []).append(cells(columns, item)[skipped:])
    shown = list(groups.items())
    return Card(title=title, lead=lead, columns=titles(columns)[skipped:], groups=shown, row_class=row_class)


@dataclass(frozen=True, kw_only=True)
class ComparisonPage:
    """The content of a comparison's page."""

    title: str
    summary: str  #: Setting of all rows.
    tiles: Sequence[Headline]
    cards: Sequence[Card]
    notes: str = ""  #: Sources of the formulas, HTML; a blank line ends a note.
    footer: str
    style: str = BY_SOURCE

    def write(self, path: Path) -> None:
        """Write the page; raises `InputError` when the path cannot be written."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        write_page("compare.html.j2", path, **content)
