"""Slow rows: each is kept at once, and found again by the key of everything it depends on."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from sim.host.files import write_text
from sim.host.progress import ProgressLine

Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class RowTask(Generic[Row]):
    """A row to be made."""

    key: str  #: Everything the row depends on, see `sim.host.digest.key_of`: rows of one key are equal.
    title: str  #: Shown while it is made.
    make: Callable[[Callable[[str], None]], Row]  #: Makes the row; reports its progress to the argument.


def read_rows(path: Path, form: str, rows: Callable[[Any], Mapping[str, Row]]) -> dict[str, Row]:
    """Read the rows of an earlier run by their keys. A file that is missing, damaged or of another ``format``
    than ``form`` has none.

    ``rows`` takes them from the file's content; it may raise ValueError, TypeError or KeyError.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return dict(rows(document)) if document["format"] == form else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def make_rows(
    title: str, tasks: Iterable[RowTask[Row]], known: dict[str, Row], keep: Callable[[], None]
) -> list[Row]:
    """Make the missing rows, show progress, and return the rows of all tasks.

    After each new row in ``known`` ``keep`` writes the file: an interrupted run resumes after the last row.
    """
    tasks = list(tasks)
    with ProgressLine(title) as activity:
        for number, task in enumerate(tasks, 1):
            place = f"{number} of {len(tasks)}, {task.title}"
            activity.update(place)
            if task.key not in known:
                known[task.key] = task.make(partial(_show, activity, place))
                keep()
    return [known[task.key] for task in tasks]


def _show(activity: ProgressLine, place: str, detail: str) -> None:
    activity.update(f"{place}: {detail}")


def write_document(path: Path, form: str, content: Mapping[str, Any]) -> None:
    """Write a comparison's file: its format and its content, as JSON."""
    write_text(path, json.dumps({"format": form, **content}, indent=1, allow_nan=False) + "\n")
