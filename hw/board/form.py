"""Board files: the form of ``boards/*.yaml`` and its translation into `hw.board.Board`.

Every number stands beside its source, ``{value: 512 MiB, source: ug1393}``.  Every source is a key of the
table ``sources`` at the end of the file.  A number with a dimension carries its unit.  Parameters of the
simulated memories (`hw.board.memory_timing`) have the unit in their key and stand below their source; a
missing one keeps the class's default, which has its own source.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import BaseModel, TypeAdapter, create_model

from hw.board.board import TIMING_OF_KIND, Board, ClockBudget, Family, Kind, Memory, MemoryTiming, Protocol
from hw.board.rates import check_rates
from hw.board.resources import Resources
from hw.board.units import Beats, Bits, Bytes, BytesPerSecond, Megahertz, Picoseconds
from hw.edge import Document, Location, dotted, read_document, validate
from hw.errors import InputError

T = TypeVar("T")


class _SourcedValue(BaseModel, Generic[T]):
    value: T
    source: str


class _ResourcesForm(BaseModel):
    lut: _SourcedValue[int]
    ff: _SourcedValue[int]
    dsp: _SourcedValue[int]
    bram36: _SourcedValue[int]
    uram: _SourcedValue[int]


class _MemoryForm(BaseModel):
    kind: Kind
    protocol: Protocol
    channels: _SourcedValue[int]
    port_width: _SourcedValue[Bits]
    burst: _SourcedValue[Beats]
    channel_size: _SourcedValue[Bytes]
    peak: _SourcedValue[BytesPerSecond]
    realistic: _SourcedValue[BytesPerSecond]
    slr: _SourcedValue[int] | None = None
    timing: dict[str, dict[str, Any]]


class _BudgetForm(BaseModel):
    uncertainty: _SourcedValue[Picoseconds]
    skew: _SourcedValue[Picoseconds]
    slr_crossing: _SourcedValue[Picoseconds]
    delay_factor: _SourcedValue[float]


class _BoardForm(BaseModel):
    title: str
    family: Family
    part: _SourcedValue[str]
    platform: _SourcedValue[str] | None = None
    board_part: _SourcedValue[str] | None = None
    slrs: _SourcedValue[int]
    clock: _SourcedValue[Megahertz]
    budget: _BudgetForm
    device: _ResourcesForm
    user: _ResourcesForm
    memories: dict[str, _MemoryForm]
    sources: dict[str, str]


_BOARD = TypeAdapter(_BoardForm)

#: Field of the dataclasses -> its key in the file, where they differ; and back.
_KEYS = {
    "port_data_width": "port_width",
    "burst_beats": "burst",
    "channel_bytes": "channel_size",
    "peak_bytes_per_second": "peak",
    "realistic_bytes_per_second": "realistic",
    "clock_mhz": "clock",
    "uncertainty_ps": "uncertainty",
    "skew_ps": "skew",
    "slr_crossing_ps": "slr_crossing",
}
_FIELDS = {key: field for field, key in _KEYS.items()}


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One number (or name) of a board file, as written, with the text of its source."""

    name: str
    value: str
    source: str


def read_facts(path: Path) -> list[Fact]:
    """Return every sourced value of a board file, in the order of the file."""
    document = read_document(path)
    validate(document, _BOARD)
    _check_sources(document)
    facts = []
    for location, source in _sources(document.data, ()):
        written = document.at(location)
        value = written["value"] if isinstance(written, dict) else written
        name = dotted(tuple(step for step in location if step != source))
        facts.append(Fact(name=name, value=str(value), source=document.data["sources"][source]))
    return facts


def read_board(path: Path) -> Board:
    """Read a board file.

    Raises `InputError` for the first thing wrong in the file, with file and line.
    """
    document = read_document(path)
    form = validate(document, _BOARD)
    _check_sources(document)
    memories, resources = [], {}
    for name, memory in form.memories.items():
        part = document.part("memories", name)
        timing = _timing(part.part("timing"), memory.kind)
        with _Placed(part):
            memories.append(Memory(name=name, **_values(memory) | {"timing": timing}))
            check_rates(memories[-1], form.family)
    for name in ("device", "user"):
        with _Placed(document.part(name)):
            resources[name] = Resources(**_values(getattr(form, name)))
    with _Placed(document.part("budget")):
        budget = ClockBudget(**_values(form.budget))
    values = {name: value for name, value in _values(form).items() if name != "sources"}
    with _Placed(document):
        values.setdefault("platform", None)
        return Board(name=path.stem, **values | resources | {"budget": budget, "memories": tuple(memories)})


def _values(form: BaseModel) -> dict[str, Any]:
    """Return a form's values by the names of the dataclass, without sources and missing fields."""
    return {
        _FIELDS.get(key, key): value.value if isinstance(value, _SourcedValue) else value
        for key, value in form
        if value is not None
    }


class _Placed:
    """Adds file and line to the errors of a dataclass, and uses the file's names of its fields."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: object, _traceback: object) -> None:
        if isinstance(error, InputError) and error.where is None:
            location: Location = tuple(_KEYS.get(step, step) for step in error.field.split("."))
            written = self.document.at((*location, "value"))
            value = error.value if written == "missing" else written
            raise self.document.error(location, error.legal, value=value) from error


@functools.cache
def _timing_adapter(kind: Kind) -> TypeAdapter[Any]:
    """Make the form of a group of timing parameters: the fields of their class, none of them required."""
    timing_type = TIMING_OF_KIND[kind]
    hints = get_type_hints(timing_type)
    forms: dict[str, Any] = {field.name: (hints[field.name], None) for field in fields(timing_type)}
    return TypeAdapter(create_model(timing_type.__name__, **forms))


def _timing(document: Document, kind: Kind) -> MemoryTiming:
    """Make the timing parameters from the groups of a ``timing`` block, one a source."""
    adapter = _timing_adapter(kind)
    values: dict[str, Any] = {}
    group_of: dict[str, str] = {}
    for source in document.data:
        form = validate(document.part(source), adapter)
        for name in document.data[source]:
            if name in values:
                raise document.error((source, name), f"given once, and {group_of[name]} has it too")
            values[name] = getattr(form, name)
            group_of[name] = source
    try:
        return TIMING_OF_KIND[kind](**values)
    except InputError as error:
        location = (group_of[error.field], error.field) if error.field in group_of else (error.field,)
        raise document.error(location, error.legal, value=error.value) from error


def _check_sources(document: Document) -> None:
    """Refuse a source that is missing from the table, and an unused entry of the table."""
    table = document.data["sources"]
    used = set()
    for location, name in _sources(document.data, ()):
        if name not in table:
            grouped = len(location) > 1 and location[-2] == name
            place = location[:-1] if grouped else (*location, "source")
            raise document.error(place, "a key of sources: " + ", ".join(table), value=name)
        used.add(name)
    for name in table:
        if name not in used:
            raise document.error(("sources", name), "the source of something in the file")


def _sources(data: Any, location: Location) -> Iterator[tuple[Location, str]]:
    """Yield the location of every sourced value, and the key of its source."""
    for key, value in data.items():
        if key == "timing" and isinstance(value, dict):
            for source, group in value.items():
                yield from (((*location, key, source, name), source) for name in group)
        elif isinstance(value, dict):
            if "source" in value:
                yield (*location, key), value["source"]
            elif key != "sources":
                yield from _sources(value, (*location, key))
