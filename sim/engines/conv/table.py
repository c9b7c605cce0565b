"""Layer tables: a network as lines of sizes."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from hw.errors import InputError

#: Columns of a table that are read; others are left alone.
COLUMNS = ("name", "kind", "H", "Cin", "Cout", "K", "s", "g", "OH")
#: Kinds of layers: plain, pointwise, depthwise, and deformable depthwise with one offset a pixel.
KINDS = ("conv", "pw", "dw", "ddw")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A layer of a table: a square map of ``rows``, ``channels`` to ``outputs``."""

    name: str
    kind: str
    rows: int
    channels: int
    outputs: int
    kernel: int
    stride: int
    group: int
    out_rows: int


def read_table(path: Path) -> list[Row]:
    """Read a table.

    Raises
    ------
    InputError
        For a column that is missing, or the first line that is wrong; the message names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets begin a file with its mark
    except UnicodeDecodeError as error:
        raise InputError("table of layers", str(path), "a .csv file") from error
    reader = csv.DictReader(text.splitlines())
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        legal = "the columns " + ", ".join(COLUMNS)
        raise InputError(f"columns of {path}", ", ".join(reader.fieldnames or ()), legal)
    rows = [_row(path, reader.line_num, line) for line in reader]
    if not rows:
        raise InputError(f"layers of {path}", 0, "at least 1")
    names = [row.name for row in rows]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"name in {path}", name, "used once")
    return rows


def _row(path: Path, line: int, given: dict[str, str]) -> Row:
    where = f"{path}, line {line}"
    if given["kind"] not in KINDS:
        raise InputError(f"kind ({where})", given["kind"], "one of " + ", ".join(KINDS))
    numbers = {}
    for name in COLUMNS[2:]:
        if not (given[name] or "").isdecimal() or int(given[name]) < 1:
            raise InputError(f"{name} ({where})", given[name], "a whole number of at least 1")
        numbers[name] = int(given[name])
    row = Row(
        name=given["name"],
        kind=given["kind"],
        rows=numbers["H"],
        channels=numbers["Cin"],
        outputs=numbers["Cout"],
        kernel=numbers["K"],
        stride=numbers["s"],
        group=numbers["g"],
        out_rows=numbers["OH"],
    )
    if -(-row.rows // row.stride) != row.out_rows:
        raise InputError(f"OH ({where})", row.out_rows, f"{-(-row.rows // row.stride)}, H by s")
    return row
