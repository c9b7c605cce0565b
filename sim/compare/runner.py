"""One comparison from its rows to its page; every new row is kept at once, and earlier ones are reused."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.table import Table

from hw.errors import InputError
from sim.compare.page import ComparisonPage
from sim.compare.rows import Row, RowTask, make_rows, read_rows, write_document
from sim.compare.table import show
from sim.host.files import csv_text, write_text

Compared = TypeVar("Compared")
Rows = Mapping[str, Row]
#: Name of a comparison's data in its directory.
_DATA_NAME = "compare.json"


@dataclass(frozen=True, kw_only=True)
class Comparing(Generic[Compared, Row]):
    """The parts of one engine's comparison. Rows are those that take long to make, by their keys."""

    form: str  #: Value of ``format`` in the file.
    rows_of: Callable[[Any], Rows[Row]]  #: Takes the rows from the file's content.
    document: Callable[[Compared, Rows[Row]], Mapping[str, Any]]  #: The file's content, with all rows.
    tables: Callable[[Compared], Iterable[Table]]  #: For the terminal.
    page: Callable[[Compared], ComparisonPage]
    title: str = "Comparing"  #: Shown while rows are made.

    def run(
        self, directory: Path, tasks: Iterable[RowTask[Row]], compared: Callable[[Rows[Row]], Compared]
    ) -> Compared:
        """Make the rows that the file in the directory does not have, then write and print everything.

        ``compared`` puts rows beside the baselines. Every new row is written at once, so that an interrupted
        run resumes.
        """
        data = directory / _DATA_NAME
        known = read_rows(data, self.form, self.rows_of)

        def keep() -> None:
            write_document(data, self.form, self.document(compared(known), known))

        make_rows(self.title, tasks, known, keep)
        found = compared(known)
        show(self.tables(found), self.write(found, directory, known))
        return found

    def write(self, compared: Compared, directory: Path, known: Rows[Row]) -> list[Path]:
        """Write ``compare.json``, ``compare.csv`` of its ``figures``, if any, and ``compare.html``.

        Raises `InputError` when the directory cannot be written to.
        """
        data, table, page = (directory / name for name in (_DATA_NAME, "compare.csv", "compare.html"))
        content = self.document(compared, known)
        write_document(data, self.form, content)
        self.page(compared).write(page)
        if "figures" not in content:
            return [data, page]
        write_text(table, csv_text(content["figures"]))
        return [data, table, page]


def listed_numbers(option: str, text: str, legal: str, most: int) -> list[int]:
    """Turn whole numbers with commas between into numbers, in increasing order.

    Raises `InputError` for a part that is no number up to ``most``, or is given twice.
    """
    found: list[int] = []
    for part in text.split(","):
        word = part.strip()
        if not (word.isascii() and word.isdigit() and int(word) <= most):
            raise InputError(option, part, f"{legal} with commas between")
        if int(word) in found:
            raise InputError(option, part, "given once")
        found.append(int(word))
    return sorted(found)


Item = TypeVar("Item")


def listed_names(names: str, known: Mapping[str, Item]) -> list[Item]:
    """Return the items behind names with commas between; raises `InputError` for an unknown name."""
    found = []
    for name in filter(None, names.split(",")):
        if name.strip() not in known:
            raise InputError("measured name", name, "one of " + ", ".join(known))
        found.append(known[name.strip()])
    return found
