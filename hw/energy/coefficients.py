"""The coefficients of ``coefficients.yaml``: picojoules and watts, each with its range and source."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter

from hw.edge import Document, Location, read_document, validate
from hw.energy.span import Span
from hw.errors import InputError

FILE = Path(__file__).with_name("coefficients.yaml")

Cell = Literal["lut", "ff", "dsp", "bram36", "uram"]
Part = Literal["clock", "access", "data"]
MemoryKind = Literal["hbm2", "ddr4", "lpddr4", "host"]
MemoryPart = Literal["activate", "read", "write", "standby"]
Confidence = Literal["measured", "published", "derived", "fitted", "estimate"]
#: Widest legal range: its high end over its low end.
WIDEST = 2.0


class RangeForm(BaseModel):
    """A figure with its range, as files have it."""

    model_config = ConfigDict(extra="ignore")  # unknown keys are found by `validate`
    value: float
    low: float
    high: float

    def span(self) -> Span:
        """Return the figure; raises `InputError` when it is outside of its range."""
        return Span(self.value, self.low, self.high)


class _Entry(RangeForm):
    source: str
    confidence: Confidence


class _Fabric(BaseModel):
    model_config = ConfigDict(extra="ignore")
    lut: dict[Part, _Entry]
    ff: dict[Part, _Entry]
    dsp: dict[Part, _Entry]
    bram36: dict[Part, _Entry]
    uram: dict[Part, _Entry]
    leakage: _Entry


class _Fitted(BaseModel):
    model_config = ConfigDict(extra="ignore")
    scale: _Entry
    toggles: _Entry


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore")
    ultrascale_plus: _Fabric
    fitted: _Fitted
    memories: dict[MemoryKind, dict[MemoryPart, _Entry]]
    sources: dict[str, str]


_FORM: TypeAdapter[_Form] = TypeAdapter(_Form)


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """Coefficients of the fabric and of memories."""

    cells: Mapping[str, Mapping[str, Span]]  #: Picojoules by cell and part; a part may be missing.
    leakage: Span  #: Watts for a million LUTs of a device.
    #: ``scale``: factor of all cells. ``toggles``: share of data bits that toggle in a cycle of work.
    scale: Span
    toggles: Span
    #: By kind of memory: picojoules of a row (``activate``) and of a byte (``read``, ``write``); watts of a
    #: channel (``standby``).
    memories: Mapping[str, Mapping[str, Span]]

    def part(self, cell: str, part: str) -> Span:
        """Return picojoules of a cell and cycle, without the fitted factors."""
        return self.cells[cell].get(part, Span())

    def steady(self, cell: str, part: str) -> Span:
        """Return picojoules of a cell and cycle whose bits do not matter: clock and access."""
        return self.scale.value * self.part(cell, part)

    def working(self, cell: str) -> Span:
        """Return picojoules of a cell's data in a cycle of work."""
        return (self.scale.value * self.part(cell, "data").value) * self.toggles


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A coefficient as its file has it."""

    name: str  #: Place in the file, with dots.
    span: Span
    source: str  #: Text of the source.
    confidence: Confidence


def read_coefficients(path: Path) -> Coefficients:
    """Read a file of coefficients.

    Raises `InputError` with file and line for an unknown or missing key, a value outside of its range, a
    range wider than `WIDEST`, and a source that the file does not have.
    """
    form, document = _read(path)
    cells = {name: _spans(getattr(form.ultrascale_plus, name)) for name in get_args(Cell)}
    for kind in get_args(MemoryKind):
        for part in get_args(MemoryPart):
            if part not in form.memories.get(kind, {}):
                raise document.error(("memories",), f"a table with {kind}.{part}", value="missing")
    for name, parts in cells.items():
        if "data" not in parts:
            raise document.error(("ultrascale_plus", name), "a table with data", value="missing")
    if not form.fitted.scale.low > 0:
        raise document.error(("fitted", "scale", "low"), "above 0")
    if not form.fitted.toggles.high <= 1:
        raise document.error(("fitted", "toggles", "high"), "at most 1")
    return Coefficients(
        cells=cells,
        leakage=form.ultrascale_plus.leakage.span(),
        scale=form.fitted.scale.span(),
        toggles=form.fitted.toggles.span(),
        memories={kind: _spans(parts) for kind, parts in form.memories.items()},
    )


@functools.cache
def load_coefficients() -> Coefficients:
    """Return the coefficients of `FILE`."""
    return read_coefficients(FILE)


def sourced(path: Path = FILE) -> list[Sourced]:
    """Return every coefficient of a file with its source, in the order of the file."""
    form, document = _read(path)
    return [
        Sourced(
            name=".".join(str(step) for step in place),
            span=entry.span(),
            source=form.sources[entry.source],
            confidence=entry.confidence,
        )
        for place, entry in _entries(document.data, ())
    ]


def _read(path: Path) -> tuple[_Form, Document]:
    document = read_document(path)
    form = validate(document, _FORM)
    for place, entry in _entries(document.data, ()):
        if entry.source not in form.sources:
            raise document.error((*place, "source"), "a key of sources: " + ", ".join(form.sources))
        try:
            entry.span()
        except InputError as error:
            legal = f"from low, {entry.low:g}, to high, {entry.high:g}, which are at least 0"
            raise document.error((*place, "value"), legal) from error
        if entry.high > WIDEST * entry.low:
            raise document.error((*place, "high"), f"at most {WIDEST:g} times low, {entry.low:g}")
    return form, document


def _entries(data: Any, place: Location) -> Iterator[tuple[Location, _Entry]]:
    """Yield each coefficient of a valid file with its place."""
    for key, value in data.items():
        if isinstance(value, dict) and "value" in value:
            yield (*place, key), _Entry.model_validate(value)
        elif isinstance(value, dict):
            yield from _entries(value, (*place, key))


def _spans(entries: Mapping[Any, _Entry]) -> dict[str, Span]:
    return {str(name): entry.span() for name, entry in entries.items()}
