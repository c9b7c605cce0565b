"""Tables of a comparison: columns said once, for the terminal and the page."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich import box
from rich.table import Table
from rich.text import Text

from sim.host.console import console

Item = TypeVar("Item")


@dataclass(frozen=True)
class Column(Generic[Item]):
    """A column: its title, the text of its cell for an item, and whether it is text rather than a number."""

    title: str
    cell: Callable[[Item], str]
    text: bool = False


Columns = tuple[Column[Item], ...]
#: Styles of rows by the source of their figures.
STYLES = {"measured": "bold green", "predicted": "green"}


def titles(columns: Columns[Any]) -> list[str]:
    """Return the titles of all columns."""
    return [column.title for column in columns]


def cells(columns: Columns[Item], item: Item) -> list[str]:
    """Return an item as text, a cell a column."""
    return [column.cell(item) for column in columns]


def table(
    title: str,
    columns: Columns[Item],
    items: Iterable[Item],
    *,
    style: Callable[[Item], str] = lambda item: "",
    ends_section: Callable[[Item], bool] = lambda item: False,
) -> Table:
    """Return a table for the terminal, an item a line."""
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for column in columns:
        found.add_column(column.title, justify="left" if column.text else "right")
    for item in items:
        texts = map(Text, cells(columns, item))
        found.add_row(*texts, style=style(item), end_section=ends_section(item))
    return found


def show(tables: Iterable[Table], written: Iterable[Path]) -> None:
    """Print tables, then the paths of the files written."""
    for table in tables:
        console().print(table)
    for path in written:
        print(path)
