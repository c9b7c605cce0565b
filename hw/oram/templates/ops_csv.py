"""The reader of `ops.csv`, shared by simulation, launch and the package's script.

The script contains this text from the first constant on, without Loomwork. So it imports only the standard
library, and quotes annotations that old versions of Python lack. ``docs/oram.md`` specifies the format.
"""

import csv
import io

#: The exact first line.
COLUMNS = ("op", "key", "value")
#: Operations with a value.
VALUED = ("put", "load")
_DIGITS = {"": (10, frozenset("0123456789")), "0x": (16, frozenset("0123456789abcdefABCDEF"))}


class OperationsError(Exception):
    """An error in a file of operations: the line (0: the file), the field, the legal form."""

    def __init__(self, line: int, field: str, value: object, legal: str) -> None:
        super().__init__(f"{f'line {line}: ' if line else ''}{field} must be {legal}, not {value!r}")
        self.line, self.field, self.value, self.legal = line, field, value, legal


def parse_operations(
    content: bytes, codes: "dict[str, int]", key_bits: int, value_bytes: int
) -> "list[tuple[int, int, int]]":
    """Return code, key and value of each operation of a file; 0 for no value.

    Raises `OperationsError` for a file without operations, or for its first wrong line.
    """
    try:
        text = content.decode("utf-8-sig")  # spreadsheets begin a file with a byte order mark
    except UnicodeDecodeError as error:
        found = "UTF-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else f"byte {content[error.start]:#04x}"
        raise OperationsError(0, "encoding", found, "UTF-8") from error
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    operations = []
    try:
        header = next(rows, [])
        if tuple(header) != COLUMNS:
            raise OperationsError(0, "columns", ",".join(header), ",".join(COLUMNS))
        for row in rows:
            operations.append(_operation(rows.line_num, row, codes, key_bits, 8 * value_bytes))
    except csv.Error as error:
        raise OperationsError(
            rows.line_num, "fields", str(error), "separated by commas, quotes closed"
        ) from error
    if not operations:
        raise OperationsError(0, "operations", 0, "at least 1")
    return operations


def _operation(
    line: int, row: "list[str]", codes: "dict[str, int]", key_bits: int, value_bits: int
) -> "tuple[int, int, int]":
    if len(row) != len(COLUMNS):
        raise OperationsError(line, "fields", len(row), f"{len(COLUMNS)}: {','.join(COLUMNS)}")
    name, key, value = row
    if name not in codes:
        raise OperationsError(line, "op", name, "one of " + ", ".join(codes))
    if name in VALUED:
        number = _number(line, "value", value, value_bits)
    elif value:
        raise OperationsError(line, "value", value, f"empty for {name}")
    else:
        number = 0
    return codes[name], _number(line, "key", key, key_bits), number


def _number(line: int, field: str, text: str, bits: int) -> int:
    """Read a whole number of at most ``bits`` bits: digits, or digits behind 0x; leading zeros are legal."""
    prefix = "0x" if text.startswith("0x") else ""
    base, legal = _DIGITS[prefix]
    digits = text[len(prefix) :]
    if digits and legal.issuperset(digits):
        significant = digits.lstrip("0") or "0"
        # Numbers with more digits than the largest are refused unread.
        if len(significant) <= bits and not int(significant, base) >> bits:
            return int(significant, base)
    raise OperationsError(line, field, text, f"a whole number below 2^{bits}, decimal or behind 0x")
