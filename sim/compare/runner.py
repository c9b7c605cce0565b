"""One comparison from its rows to its page; every new row is kept at once, and earlier ones are reused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.table import Table

from hw.errors import InputError
from sim.compare.files import DATA_NAME
from sim.compare.rows import Row, RowTask, make_rows, read_rows, write_document
from sim.compare.table import show

Compared = TypeVar("Compared")
Rows = Mapping[str, Row]


@dataclass(frozen=True, kw_only=True)
class Comparing(Generic[Compared, Row]):
    """The parts of one engine's comparison. Rows are those that take long to make, by their keys."""

    form: str  #: Value of ``format`` in the file.
    rows_of: Callable[[Any], Rows[Row]]  #: Takes the rows from the file's content.
    compared: Callable[[Rows[Row]], Compared]  #: Puts the rows beside the baselines.
    document: Callable[[Compared, Rows[Row]], Mapping[str, Any]]  #: The file's content, with all rows.
    tables: Callable[[Compared], Iterable[Table]]  #: For the terminal.
    write: Callable[[Compared, Path, Rows[Row]], Sequence[Path]]  #: Writes files and page to a directory.
    title: str = "Comparing"  #: Shown while rows are made.

    def run(self, directory: Path, tasks: Iterable[RowTask[Row]]) -> Compared:
        """Make the rows that the file in the directory does not have, then write and print everything."""
        data = directory / DATA_NAME
        known = read_rows(data, self.form, self.rows_of)

        def keep() -> None:
            write_document(data, self.form, self.document(self.compared(known), known))

        make_rows(self.title, tasks, known, keep)
        found = self.compared(known)
        show(self.tables(found), self.write(found, directory, known))
        return found


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
            raise InputError("name of what is measured", name, "one of " + ", ".join(known))
        found.append(known[name.strip()])
    return found
