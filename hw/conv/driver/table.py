"""Layer tables: a network as lines of sizes."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.errors import InputError, check_one_of

#: Name of a table among the tensors of a job: an array of no dimension that holds its rows.
NETWORK = "(network)"
#: Required columns, optional ones, and derived ones, which must agree with the others.
COLUMNS = ("name", "kind", "H", "Cin", "Cout", "K", "s", "g", "OH")
OPTIONAL = ("W", "OW", "d", "p")
DERIVED = ("macs", "wts", "bytes_in", "bytes_out")
#: Kinds of layers: plain, pointwise, depthwise, and deformable depthwise with one offset a pixel.
KINDS = ("conv", "pw", "dw", "ddw")
_SIZES = ("H", "W", "Cin", "Cout", "g", "OH", "OW")
_DIGITS = 9
#: Argument names that NumPy's archives reserve.
_RESERVED = ("file", "allow_pickle")

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A layer of a table: a map of ``rows`` and ``columns``, ``channels`` to ``outputs``."""

    name: str
    kind: str
    rows: int
    #: ``columns``, ``out_columns``: by default as many as rows.
    columns: int
    channels: int
    outputs: int
    #: ``kernel``, ``stride``, ``dilation``: of rows and of columns.
    kernel: Pair
    stride: Pair
    group: int
    out_rows: int
    out_columns: int
    pads: tuple[int, int, int, int]  #: Above, left, below, right.
    dilation: Pair = (1, 1)
    line: int = 0  #: Line in its file, 0 for none.

    @property
    def size(self) -> Pair:
        """Rows and columns of the map."""
        return self.rows, self.columns

    @property
    def out_size(self) -> Pair:
        """Rows and columns of the result."""
        return self.out_rows, self.out_columns

    def error(self, field: str, value: object, legal: str) -> InputError:
        """Return the error of a value of this layer."""
        where = f"line {self.line}, " if self.line else ""
        return InputError(f"{field} ({where}layer {self.name})", value, legal)


def square(
    name: str, kind: str, rows: int, channels: int, outputs: int, kernel: int, stride: int, group: int
) -> Row:
    """Return a layer of a square map and kernel whose result has ``rows / stride`` rows, rounded up."""
    side = -(-rows // stride)
    size, pairs = (rows, rows), ((kernel, kernel), (stride, stride), (1, 1))
    return Row(
        name=name,
        kind=kind,
        rows=rows,
        columns=rows,
        channels=channels,
        outputs=outputs,
        kernel=pairs[0],
        stride=pairs[1],
        group=group,
        out_rows=side,
        out_columns=side,
        pads=_same(size, *pairs),
    )


def read_table(path: Path) -> list[Row]:
    """Read a table.

    Raises `InputError` for columns that are missing, unknown or repeated, or the first line that is wrong;
    the message names file, line and layer.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets write a byte order mark
    except UnicodeDecodeError as error:
        raise InputError("table of layers", str(path), "a .csv file") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_columns(path, names)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(_row(path, reader.line_num, names, cells))
    except csv.Error as error:
        raise InputError(
            f"line {reader.line_num} of {path}", str(error), "of comma-separated values"
        ) from error
    if not rows:
        raise InputError(f"layers of {path}", 0, "at least 1")
    seen: set[str] = set()
    for row in rows:
        if row.name in seen:
            raise InputError(f"name ({path}, line {row.line})", row.name, "used once")
        seen.add(row.name)
    return rows


def _check_columns(path: Path, names: Sequence[str]) -> None:
    given = ", ".join(names)
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        legal = f"the columns {', '.join(COLUMNS)}; {', '.join(missing)} missing"
        raise InputError(f"columns of {path}", given, legal)
    known = (*COLUMNS, *OPTIONAL, *DERIVED)
    for name in names:
        check_one_of(f"column of {path}", name, known)
        if names.count(name) > 1:
            raise InputError(f"column of {path}", name, "there once")


def _row(path: Path, line: int, names: Sequence[str], cells: Sequence[str]) -> Row:
    where = f"{path}, line {line}"
    if len(cells) != len(names):
        raise InputError(f"cells ({where})", len(cells), f"{len(names)}, one for each column")
    given = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
    name, kind = given["name"], given["kind"]
    if not name or not name.isprintable() or name in _RESERVED:
        raise InputError(f"name ({where})", name, "a name of printable characters")
    where = f"{where}, layer {name}"
    check_one_of(f"kind ({where})", kind, KINDS)
    numbers = {key: _number(where, key, given[key]) for key in _SIZES if key in given}
    size = numbers["H"], numbers.get("W", numbers["H"])
    kernel, stride, dilation = (
        _pair(where, key, given[key]) if key in given else (1, 1) for key in ("K", "s", "d")
    )
    pads = _pads(where, given["p"]) if "p" in given else _same(size, kernel, stride, dilation)
    ends = [
        (size[axis] + pads[axis] + pads[axis + 2] - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis]
        + 1
        for axis in (0, 1)
    ]
    by = "H by s" if "p" not in given else "what H, K, s, d and p make"
    for key, axis in (("OH", 0), ("OW", 1)):
        told = numbers.get(key, ends[axis])
        if told != ends[axis]:
            raise InputError(f"{key} ({where})", told, f"{ends[axis]}, {by.replace('H', 'HW'[axis], 1)}")
    row = Row(
        name=name,
        kind=kind,
        rows=size[0],
        columns=size[1],
        channels=numbers["Cin"],
        outputs=numbers["Cout"],
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        pads=pads,
        group=numbers["g"],
        out_rows=ends[0],
        out_columns=ends[1],
        line=line,
    )
    _check_kind(where, row)
    for key, value in _derived(row):
        if key in given and _number(where, key, given[key]) != value:
            raise InputError(f"{key} ({where})", given[key], f"{value}, as the other columns have it")
    return row


def _check_kind(where: str, row: Row) -> None:
    """Check a layer against the rules of its kind."""
    if row.kind == "pw" and (row.kernel != (1, 1) or any(row.pads)):
        raise InputError(
            f"K ({where})", _shown(row.kernel), "1 without padding: of a larger kernel the kind is conv"
        )
    if row.kind in ("dw", "ddw") and row.group != row.channels:
        raise InputError(f"g ({where})", row.group, f"{row.channels}, Cin: in other groups the kind is conv")
    if row.kind == "ddw" and row.outputs != row.channels:
        raise InputError(f"Cout ({where})", row.outputs, f"{row.channels}, Cin")
    for key, channels in (("Cin", row.channels), ("Cout", row.outputs)):
        if channels % row.group:
            raise InputError(f"g ({where})", row.group, f"a divisor of {channels}, {key}")


def _derived(row: Row) -> Iterator[tuple[str, int]]:
    """Return the derived columns of a layer."""
    weights = row.outputs * row.channels // row.group * row.kernel[0] * row.kernel[1]
    yield "macs", weights * row.out_rows * row.out_columns
    yield "wts", weights
    yield "bytes_in", row.rows * row.columns * row.channels
    yield "bytes_out", row.out_rows * row.out_columns * row.outputs


def _same(size: Pair, kernel: Pair, stride: Pair, dilation: Pair) -> tuple[int, int, int, int]:
    """Return the pads with which a result has ``size / stride`` pixels, rounded up.

    Half the kernel on all sides; fewer below and right where the kernel is even.
    """
    first = [dilation[axis] * (kernel[axis] // 2) for axis in (0, 1)]
    last = []
    for axis in (0, 1):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        needed = (-(-size[axis] // stride[axis]) - 1) * stride[axis] + reach - size[axis] - first[axis]
        last.append(first[axis] if kernel[axis] % 2 else max(0, needed))
    return first[0], first[1], last[0], last[1]


def _number(where: str, key: str, text: str, least: int = 1) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text) >= least):
        raise InputError(f"{key} ({where})", text, f"a whole number of at least {least}")
    return int(text)


def _pair(where: str, key: str, text: str) -> Pair:
    parts = text.split("x")
    if len(parts) > 2:
        raise InputError(f"{key} ({where})", text, "a whole number, or two: rows x columns")
    first, *rest = (_number(where, key, part) for part in parts)
    return first, rest[0] if rest else first


def _pads(where: str, text: str) -> tuple[int, int, int, int]:
    parts = text.split("x")
    if len(parts) not in (1, 2, 4):
        legal = "a whole number, two (rows x columns), or four (above x left x below x right)"
        raise InputError(f"p ({where})", text, legal)
    numbers = [_number(where, "p", part, least=0) for part in parts]
    above, left, below, right = numbers * (4 // len(numbers))
    return above, left, below, right


def _shown(pair: Pair) -> str:
    return f"{pair[0]}" if pair[0] == pair[1] else f"{pair[0]}x{pair[1]}"
