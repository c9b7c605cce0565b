"""Numbers with units, as written in board files: ``460.8 GB/s``, ``512 MiB``, ``300 MHz``."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_BYTES = {f"{prefix}B": factor for prefix, factor in (_DECIMAL | _BINARY).items()}

#: Factors of units, relative to the unit of the program.
BYTES = _BYTES
BYTES_PER_SECOND = {f"{unit}/s": factor for unit, factor in _BYTES.items()}
MEGAHERTZ = {"kHz": Fraction(1, 1000), "MHz": 1, "GHz": 1000}
PICOSECONDS = {"ps": 1, "ns": 1000}
BITS = {"bit": 1}
BEATS = {"beats": 1}

_QUANTITY = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?) *([A-Za-z/]*)")
#: Largest quantity in the unit of the program, a pebibyte: products of such numbers stay exact.
_MOST = 1 << 50


def quantity(text: Any, units: Mapping[str, int | Fraction], *, whole: bool) -> int | float:
    """Parse a text such as ``"512 MiB"``.

    ``units``: the legal units with their factors. ``whole``: whether the result must be a whole number.

    Raises `PydanticCustomError` when the unit is missing or unknown, or the number not above 0, not whole or
    above 2^50; pydantic adds the place.
    """
    legal = "a number above 0 with one of the units " + ", ".join(units)
    if whole:
        legal = "a whole " + legal.removeprefix("a ")
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2] not in units:
        raise PydanticCustomError("quantity", "Input should be {legal}", {"legal": legal})
    value = Fraction(match[1]) * units[match[2]]
    if value <= 0 or (whole and value.denominator != 1):
        raise PydanticCustomError("quantity", "Input should be {legal}", {"legal": legal})
    if value > _MOST:
        unit = next(name for name, factor in units.items() if factor == 1)
        raise PydanticCustomError("quantity", "Input should be {legal}", {"legal": f"at most 2^50 {unit}"})
    return int(value) if whole else float(value)


Bytes = Annotated[int, BeforeValidator(lambda text: quantity(text, BYTES, whole=True))]
BytesPerSecond = Annotated[float, BeforeValidator(lambda text: quantity(text, BYTES_PER_SECOND, whole=False))]
Megahertz = Annotated[float, BeforeValidator(lambda text: quantity(text, MEGAHERTZ, whole=False))]
Picoseconds = Annotated[float, BeforeValidator(lambda text: quantity(text, PICOSECONDS, whole=False))]
Bits = Annotated[int, BeforeValidator(lambda text: quantity(text, BITS, whole=True))]
Beats = Annotated[int, BeforeValidator(lambda text: quantity(text, BEATS, whole=True))]
