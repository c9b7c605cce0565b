"""Files of operations and of their results: ``ops.csv``, ``results.csv``, ``labels.csv``."""

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from hw.oram.driver.operations import UNVERIFIED, OperationResults, Operations
from hw.oram.templates.ops_csv import OperationsError, parse_operations
from sim.host.files import write_text
from sim.host.paths import check_readable

#: Columns of the results.
RESULT_COLUMNS = ("op", "key", "status", "value")


def read_operations(path: Path, config: OramConfig) -> Operations:
    """Read a file of operations: the columns ``op,key,value``, a line each.

    ``op`` is the name of a `Code` in small letters; a value's lowest byte is its first. `parse_operations`,
    shared with the package's script, defines the legal forms.

    Raises `InputError` when the file cannot be read, has no operation, or has a wrong line: the first is
    named.
    """
    check_readable("operations", path)
    names = {code.name.lower(): int(code) for code in Code}
    try:
        found = parse_operations(path.read_bytes(), names, config.key_bits, config.value_bytes)
    except OperationsError as error:
        where = f"{path}, line {error.line}" if error.line else str(path)
        raise InputError(error.field, error.value, error.legal, where=where) from error
    codes, keys, values = zip(*found, strict=True)
    content = b"".join(value.to_bytes(config.value_bytes, "little") for value in values)
    return Operations(
        codes=np.array(codes, np.uint8),
        keys=np.array(keys, np.uint64),
        values=np.frombuffer(content, np.uint8).reshape(-1, config.value_bytes),
    )


def write_results(path: Path, codes: NDArray[np.uint8], results: OperationResults) -> None:
    """Write a line for each operation: its code, its status, and the value before it, if any.

    A response with a wrong tag has only its status.

    Raises `InputError` when the file cannot be written.
    """
    digits = 2 * results.values.shape[1]
    lines = [",".join(RESULT_COLUMNS)]
    rows = zip(codes, results.keys, results.statuses, results.values, strict=True)
    for code, key, status, value in rows:
        name, end = _name(Code, code), _name(Status, status)
        if status == UNVERIFIED:
            lines.append(f"{name},,unverified,")
            continue
        shown = f"0x{int.from_bytes(value.tobytes(), 'little'):0{digits}x}" if status == Status.HIT else ""
        lines.append(f"{name},{key},{end},{shown}")
    write_text(path, "\n".join(lines) + "\n")


def _name(kind: type[IntEnum], number: int) -> str:
    """Return the name of a number in files, or the number if it has none."""
    return kind(number).name.lower() if number in set(kind) else str(number)


def write_labels(path: Path, labels: Sequence[Sequence[int]]) -> None:
    """Write the labels that each operation revealed: a line an operation, with commas between.

    Raises `InputError` when the file cannot be written.
    """
    lines = ["labels", *(",".join(map(str, revealed)) for revealed in labels)]
    write_text(path, "\n".join(lines) + "\n")
