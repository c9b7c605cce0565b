"""Operations as a user gives them, and what came of them: ``ops.csv`` and ``results.csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from sim.host.files import write_text
from sim.host.paths import check_readable

#: Columns of the two files.
COLUMNS = ("op", "key", "value")
RESULT_COLUMNS = ("op", "key", "status", "value")
#: Codes that have a value.
_VALUED = (Code.PUT, Code.LOAD)


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Operations in order.

    Members
    -------
    codes
        [n], uint8: `hw.oram.core.layouts.Code`.
    keys
        [n], uint64.
    values
        [n, V], uint8: zeros where an operation has none.
    """

    codes: NDArray[np.uint8]
    keys: NDArray[np.uint64]
    values: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came of operations, in order.

    Members
    -------
    statuses
        [n], uint8: `hw.oram.core.layouts.Status`.
    keys
        [n], uint64.
    values
        [n, V], uint8: the value before the operation, zeros where there was none.
    """

    statuses: NDArray[np.uint8]
    keys: NDArray[np.uint64]
    values: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.statuses)


def read_operations(path: Path, config: OramConfig) -> Operations:
    """Read a file of operations: the columns ``op,key,value``, a line each.

    ``op`` is the name of a `Code` in small letters. Keys and values are whole numbers, decimal or hexadecimal
    behind ``0x``; a value's lowest byte is its first. Only ``put`` and ``load`` have a value.

    Raises
    ------
    InputError
        When the file cannot be read or has no operation, or for its first wrong line: the message names file
        and line.
    """
    check_readable("operations", path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets begin a file with its mark
    except UnicodeDecodeError as error:
        raise InputError("operations", str(path), "a .csv file") from error
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader, [])
    if tuple(header) != COLUMNS:
        raise InputError(f"columns of {path}", ",".join(header), ",".join(COLUMNS))
    names = {code.name.lower(): code for code in Code}
    codes, keys, values = [], [], bytearray()
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if len(row) != len(COLUMNS):
            raise InputError("fields", len(row), f"{len(COLUMNS)}: {','.join(COLUMNS)}", where=where)
        if row[0] not in names:
            raise InputError("op", row[0], "one of " + ", ".join(names), where=where)
        code, value = names[row[0]], 0
        if code in _VALUED:
            value = _number("value", row[2], 8 * config.value_bytes, where)
        elif row[2]:
            raise InputError("value", row[2], f"empty for {row[0]}", where=where)
        codes.append(code)
        keys.append(_number("key", row[1], config.key_bits, where))
        values += value.to_bytes(config.value_bytes, "little")
    if not codes:
        raise InputError(f"operations of {path}", 0, "at least 1")
    return Operations(
        codes=np.array(codes, np.uint8),
        keys=np.array(keys, np.uint64),
        values=np.frombuffer(bytes(values), np.uint8).reshape(-1, config.value_bytes),
    )


def _number(name: str, text: str, bits: int, where: str) -> int:
    """Read a whole number of so many bits."""
    digits = text.removeprefix("0x")
    legal = f"a whole number below 2^{bits}, decimal or behind 0x"
    if not digits.isascii() or not digits.isalnum():
        raise InputError(name, text, legal, where=where)
    try:
        # A number of more digits than the largest has is not worth reading.
        value = int(digits, 16 if digits != text else 10) if len(digits) <= bits else 1 << bits
    except ValueError as error:
        raise InputError(name, text, legal, where=where) from error
    if value >> bits:
        raise InputError(name, text, legal, where=where)
    return value


def write_results(path: Path, codes: NDArray[np.uint8], results: Results) -> None:
    """Write a line for each operation: its code, its status, and the value before it where there was one.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    digits = 2 * results.values.shape[1]
    lines = [",".join(RESULT_COLUMNS)]
    rows = zip(codes, results.keys, results.statuses, results.values, strict=True)
    for code, key, status, value in rows:
        name, end = _name(Code, code), _name(Status, status)
        shown = f"0x{int.from_bytes(value.tobytes(), 'little'):0{digits}x}" if status == Status.HIT else ""
        lines.append(f"{name},{key},{end},{shown}")
    write_text(path, "\n".join(lines) + "\n")


def _name(kind: type[IntEnum], number: int) -> str:
    """Name a number as files do; one that has no name stands for itself."""
    return kind(number).name.lower() if number in set(kind) else str(number)


def write_labels(path: Path, labels: Sequence[Sequence[int]]) -> None:
    """Write the labels that each operation revealed: a line an operation, with commas between.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    lines = ["labels", *(",".join(map(str, revealed)) for revealed in labels)]
    write_text(path, "\n".join(lines) + "\n")
