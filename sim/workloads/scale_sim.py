"""Topologies of SCALE-Sim: tables of convolutions, or of matrix products.

The columns are those of ``topologies/`` in SCALE-Sim 2 and 3: a convolution has the size of its map with
padding, and its result has ``ceil((size - filter) / stride) + 1`` rows and columns.  A layer whose name has
``DP`` is depthwise.  A column of sparsity, ``2:4``, may be last.
"""

import csv
import io
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from hw.errors import InputError
from sim.workloads.layers import Convolution, Layer, Other, Product, Work, Workload, joined

_CONVOLUTION = (
    "ifmap height", "ifmap width", "filter height", "filter width", "channels", "num filter", "strides",
)  # fmt: skip
_PRODUCT = ("m", "n", "k")
#: Names of further columns: two for the strides, the number of images, the density of weights.
_STRIDES, _BATCH, _SPARSITY = ("stride height", "stride width"), "batch size", "sparsity"
#: Columns of shipped tables that SCALE-Sim does not read: they follow from the others.
_UNREAD = ("", "eh", "ew", "e2")
_LARGEST = 10**9
#: Products of attention, by their names: ``QKT`` and ``QKTV``, ``QK`` and ``AV``.
_LOGITS = re.compile(r"q[^a-z]*k([^a-z]*t)?([^a-z]|$)", re.IGNORECASE)
_VALUES = re.compile(r"(qkt?|a|p|s)[^a-z]*v([^a-z]|$)", re.IGNORECASE)


def read_topology(path: Path, text: str) -> Workload:
    """Read a topology.

    Raises `InputError` for another header, or the first line that is wrong; the message names file, line and
    column.
    """
    try:
        table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise InputError("table", str(error), "comma-separated values", where=str(path)) from error
    lines = [(n, [cell.partition("#")[0].strip() for cell in cells]) for n, cells in enumerate(table, 1)]
    lines = [(n, cells) for n, cells in lines if any(cells)]
    if not lines:
        raise InputError("header", "", _legal_header(), where=f"{path}:1")
    columns = _columns(path, *lines[0])
    layers = [_layer(f"{path}:{number}", cells, columns) for number, cells in lines[1:]]
    if not layers:
        raise InputError("layers", 0, "at least 1", where=str(path))
    pairs = pairwise(layers)
    attentions = [
        found
        for one, two in pairs
        if _LOGITS.search(one.name)
        and _VALUES.search(two.name)
        and (found := joined(one, two, (one.name, two.name), name=f"{one.name} {two.name}"))
    ]
    kind = "matrix products" if _PRODUCT[0] in columns else "convolutions"
    return Workload(
        source=f"SCALE-Sim topology of {kind}", layers=tuple(layers), attentions=tuple(attentions)
    )


def _legal_header() -> str:
    convolution = ", ".join(name.title() for name in _CONVOLUTION)
    return f"Layer, {convolution}; or Layer, M, N, K"


def _columns(path: Path, number: int, header: Sequence[str]) -> list[str]:
    """Return the columns by their names in lower case."""
    names = [name.lower() for name in header]
    found = next(
        (form for form in (_CONVOLUTION, _PRODUCT, (*_CONVOLUTION[:-1], *_STRIDES)) if _has(names, form)),
        None,
    )
    if found is None or not names[0].startswith("layer"):
        raise InputError("header", ", ".join(header), _legal_header(), where=f"{path}:{number}")
    for name in names[1 + len(found) :]:
        if name not in (_BATCH, _SPARSITY, *_UNREAD):
            legal = f"one of {_BATCH}, {_SPARSITY}, eh, ew, e2"
            raise InputError("column", name, legal, where=f"{path}:{number}")
    return names


def _has(names: Sequence[str], form: Sequence[str]) -> bool:
    return list(names[1 : 1 + len(form)]) == list(form)


def _layer(where: str, cells: Sequence[str], columns: Sequence[str]) -> Layer:
    name = cells[0]
    given = dict(zip(columns[1:], cells[1:], strict=False))
    if not name or not name.isprintable():
        raise InputError("layer", name, "a name of printable characters", where=where)
    if extra := [cell for cell in cells[len(columns) :] if cell]:
        raise InputError("cells", extra[0], f"at most {len(columns)}, one for each column", where=where)
    work: Work
    if "m" in given:
        rows, columns_of, inner = (_whole(where, name, key, given.get(key, "")) for key in _PRODUCT)
        work = Product(rows=rows, columns=columns_of, inner=inner)
    else:
        work = _convolution(where, name, given)
    if (density := given.get(_SPARSITY, "")) and (sparse := _sparse(where, name, density)):
        work = Other(reason=f"sparse weights, {sparse}")
    count = _whole(where, name, _BATCH, given[_BATCH]) if given.get(_BATCH) else 1
    return Layer(name=name, where=where, work=work, count=count)


def _convolution(where: str, name: str, given: dict[str, str]) -> Convolution:
    strides = _STRIDES if _STRIDES[0] in given else (_CONVOLUTION[-1],) * 2
    numbers = [_whole(where, name, key, given.get(key, "")) for key in (*_CONVOLUTION[:-1], *strides)]
    rows, columns, high, wide, channels, filters, down, right = numbers
    for key, size, filter_size in ((_CONVOLUTION[0], rows, high), (_CONVOLUTION[1], columns, wide)):
        if filter_size > size:
            raise InputError(f"{key} of {name}", size, f"at least {filter_size}, the filter's", where=where)
    depthwise = "DP" in name
    return Convolution(
        channels=channels,
        rows=rows,
        columns=columns,
        outputs=channels * filters if depthwise else filters,
        kernel=(high, wide),
        strides=(down, right),
        # The last window may reach beyond the map.
        pads=(0, 0, -(rows - high) % down, -(columns - wide) % right),
        group=channels if depthwise else 1,
    )


def _sparse(where: str, name: str, density: str) -> str:
    """Return the density N:M of weights, or nothing where all are there."""
    if not (found := re.fullmatch(r"(\d{1,9}):(\d{1,9})", density)) or not 0 < int(found[1]) <= int(found[2]):
        raise InputError(f"{_SPARSITY} of {name}", density, "N:M with N from 1 to M", where=where)
    return density if int(found[1]) < int(found[2]) else ""


def _whole(where: str, name: str, key: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and 0 < int(text) <= _LARGEST):
        raise InputError(f"{key} of {name}", text, f"a whole number from 1 to {_LARGEST:,}", where=where)
    return int(text)
