"""The files of a comparison: data, table and page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.compare.page import ComparisonPage
from sim.compare.rows import write_document
from sim.compare.table import csv_text
from sim.host.files import write_text

#: Name of a comparison's data in its directory.
DATA_NAME = "compare.json"


def write_files(
    directory: Path, form: str, content: Mapping[str, Any], shown: ComparisonPage
) -> tuple[Path, ...]:
    """Write ``compare.json``, ``compare.csv`` and ``compare.html`` into a directory, and return their paths.

    ``form``, ``content``: of the data, see `write_document`; the table has its ``figures``, if any.

    Raises `InputError` when the directory cannot be written to.
    """
    data, table, page = (directory / name for name in (DATA_NAME, "compare.csv", "compare.html"))
    write_document(data, form, content)
    shown.write(page)
    if "figures" not in content:
        return data, page
    write_text(table, csv_text(content["figures"]))
    return data, table, page
