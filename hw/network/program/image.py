"""The program image: a program as bytes in memory, loaded at launch.

An image is a sequence of records, see `hw.network.program.records`, in the order of
`hw.network.program.arrival`.  Record 0 is the header.  A kernel takes
only images made for its own shape: the header has all that rows depend on.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from amaranth.hdl import Shape, ShapeLike
from amaranth.lib import data

from hw.errors import InputError, check_range
from hw.network.attention.fields import attention_fields
from hw.network.commands import AttentionCommand, MatrixCommand, VectorCommand, VectorKind
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.matrix.unit_command import unit_command, unit_entries, unit_weights
from hw.network.matrix.word_gate import follow_fields
from hw.network.program.arrival import image_order
from hw.network.program.program import NetworkProgram, Transfer
from hw.network.program.records import (
    HEADER,
    RECORD_BYTES,
    SECOND_FEED,
    SHAPE_BITS,
    SLOT_BITS,
    SLOTS,
    TABLE_BITS,
    VECTOR_WALKS,
    TableNumber,
    ram_layout,
    row_layout,
)
from hw.network.program.row_places import Blocks, RowPlaces, commands_of
from hw.network.tables.layouts import table_words
from hw.network.vector.fields import scale_row, tap_row, vector_fields
from hw.network.vector.wide_fields import channel_slots

VERSION = 5
#: ``"LWNI"``, little-endian.
MAGIC = 0x494E574C
#: Bits of the digest of a program's weights.
DIGEST_BITS = 64

Row = Mapping[str, Any]


def weights_digest(program: NetworkProgram) -> int:
    """Return a digest of all packets of weights."""
    found = hashlib.sha256()
    for beats in program.passes:
        found.update(beats.tobytes())
    return int.from_bytes(found.digest()[: DIGEST_BITS // 8], "little")


def first_words(program: NetworkProgram, config: NetworkConfig) -> list[int]:
    """Return the first word of each pass of weights in a port's memory."""
    found, words = [], 0
    for beats in program.passes:
        found.append(words)
        words += len(beats) * config.matrix.lines
    return found


def limits(program: NetworkProgram, *, lanes: int = 64) -> dict[str, int]:
    """Return the smallest value of each limit of `NetworkConfig` at which a program fits.

    ``lanes``: of the vector unit.
    """
    vector, places = commands_of(program, VectorCommand), RowPlaces(program, lanes=lanes)
    attention = commands_of(program, AttentionCommand)
    statistics = [each.pixel + each.columns for each in vector if each.kind is VectorKind.STATS]
    return {
        "scratchpad_bytes": program.scratchpad_bytes,
        "max_steps": len(program.steps),
        "max_transfers": max(len(program.reads), len(program.writes), 1),
        "max_region_bytes": program.memory_words * WORD_BYTES,
        "max_taps": places.taps.rows,
        "vector_taps": places.windows.rows,
        "scales": places.scales.rows,
        "tables": len(program.tables),
        "exponentials": len(program.exponentials),
        "pixels": max(statistics, default=0),
        "channels": sum(places.counts.values()),
        "attention_rows": int(bool(attention)),
        "attention_tokens": max((max(each.queries, each.keys) for each in attention), default=0),
    }


def needs(program: NetworkProgram, config: NetworkConfig) -> None:
    """Raise `InputError` for the first limit of a kernel that a program exceeds.

    The error has the name of the operator whose commands exceed the limit, where it depends on commands.
    """
    if program.columns != config.columns:
        legal = f"{config.columns}, as of the kernel"
        raise InputError("columns of the program", program.columns, legal)
    for field, value in limits(program, lanes=config.lanes).items():
        most = getattr(config, field)
        if value > most:
            name = f"{field.removeprefix('max_')} of the program"
            raise InputError(
                f"{name}{_operator(program, field, most, lanes=config.lanes)}",
                value,
                f"at most {most}, the {field} of the kernel",
            )


def _operator(program: NetworkProgram, field: str, most: int, *, lanes: int) -> str:
    """Return the words that name the operator with whose commands a program exceeds a limit."""

    def beyond(count: int) -> bool:
        return limits(_front(program, count), lanes=lanes)[field] > most

    steps = program.steps
    count = bisect.bisect_left(range(len(steps) + 1), True, key=beyond)
    # Without any command it is the plan's, with all of them that of tables without a reader.
    return f" at operator {steps[count - 1].operator!r}" if 0 < count <= len(steps) else ""


def _front(program: NetworkProgram, count: int) -> NetworkProgram:
    """Return the first commands of a program, with the tables that they use."""
    front = replace(program, steps=program.steps[:count])
    vector = commands_of(front, VectorCommand)
    powers = [each.table for each in vector if each.kind is VectorKind.SOFTMAX]
    tables = [each.table for each in vector if each.kind is VectorKind.TABLE]
    tables += [each.table for each in commands_of(front, MatrixCommand)]
    return replace(
        front,
        tables=program.tables[: max(tables, default=-1) + 1],
        exponentials=program.exponentials[: max(powers, default=-1) + 1],
    )


def check(image: bytes, config: NetworkConfig) -> None:
    """Raise `InputError` unless ``image`` is a whole image for a kernel."""
    if len(image) < RECORD_BYTES or len(image) % RECORD_BYTES:
        raise InputError("bytes of the program image", len(image), f"whole records of {RECORD_BYTES}")
    header = _header(image)
    for name, value, legal in (
        ("magic of the program image", header.magic, MAGIC),
        ("version of the program image", header.version, VERSION),
        ("records of the program image", len(image) // RECORD_BYTES, header.records),
    ):
        if value != legal:
            raise InputError(name, value, f"{legal}")
    check_range("opening records of the program image", header.opening, 1, header.records)
    for name in SHAPE_BITS:
        value, own = header[name], getattr(config, name)
        if value != own:
            raise InputError(f"{name} of the program image", value, f"{own}, as of the kernel")


def encode(program: NetworkProgram, config: NetworkConfig) -> bytes:
    """Return the image of a program for a kernel.

    Raises `InputError` for a program that the kernel cannot hold, or a command beyond a unit's limits.
    """
    needs(program, config)
    order = image_order(program, lanes=config.lanes)
    header = {
        "magic": MAGIC,
        "version": VERSION,
        "records": len(order.records),
        "opening": order.opening,
        "weights_digest": weights_digest(program),
        **{name: getattr(config, name) for name in SHAPE_BITS},
    }
    tables = {TableNumber.HEADER: [header]} | _rows(program, config)
    assert len(order.records) == sum(map(len, tables.values()))
    layouts = {number: row_layout(number, config) for number in tables}
    return b"".join(
        (each.table | bits_of(layouts[each.table], tables[each.table][each.number]) << TABLE_BITS).to_bytes(
            RECORD_BYTES, "little"
        )
        for each in order.records
    )


def opening_records(image: bytes) -> int:
    """Return the records of an image that a launch loads before its first command."""
    return int(_header(image).opening)


def bits_of(shape: ShapeLike, value: Any) -> int:
    """Return a value as the bits of its shape; raises OverflowError for a field that does not fit.

    >>> bits_of(data.StructLayout({"low": 4, "high": data.ArrayLayout(2, 2)}), {"low": 3, "high": [1, 2]})
    147
    """
    if isinstance(shape, data.StructLayout):
        assert set(shape.members) == set(value), set(shape.members) ^ set(value)
        fields = [(shape[name], value[name]) for name in shape.members]
    elif isinstance(shape, data.ArrayLayout):
        assert shape.length == len(value)
        fields = [(shape[n], each) for n, each in enumerate(value)]
    else:
        plain = Shape.cast(shape)
        bits = plain.width
        if not (-(1 << bits) >> 1 if plain.signed else 0) <= value < 1 << bits - plain.signed:
            raise OverflowError(f"{value} in {bits} bits")
        return value & (1 << bits) - 1
    return sum(bits_of(field.shape, each) << field.offset for field, each in fields)


def _header(image: bytes) -> Any:
    bits = int.from_bytes(image[:RECORD_BYTES], "little") >> TABLE_BITS
    return HEADER.from_bits(bits & (1 << HEADER.size) - 1)


def _rows(program: NetworkProgram, config: NetworkConfig) -> dict[TableNumber, list[Row]]:
    """Return the rows of each table."""
    matrix, vector = commands_of(program, MatrixCommand), commands_of(program, VectorCommand)
    places, firsts = RowPlaces(program, lanes=config.lanes), first_words(program, config)
    taps, shape = places.taps, config.shape
    entries = [
        entry["entry"] for command in taps for entry in unit_entries(command, taps.own(command), shape)
    ]
    rams: dict[TableNumber, list[Any]] = {
        TableNumber.TAPS: entries,
        TableNumber.VECTOR_TAPS: [
            tap_row(config.vector, tile) for command in places.windows for tile in places.windows.own(command)
        ],
        TableNumber.SCALES: [scale_row(scale) for scale in places.scales.values],
        TableNumber.TABLES: [word for table in program.tables for word in table_words(table.tobytes())],
        TableNumber.EXPONENTIALS: [int(each) for table in program.exponentials for each in table],
    }
    units = [unit_command(command, taps.own(command), shape, config.matrix) for command in matrix]
    fields = [vector_fields(config.vector, each, places.of(each)) for each in vector]
    return {
        TableNumber.STEPS: _steps(program),
        TableNumber.READS: _reads(program.reads),
        TableNumber.WRITES: _transfers(program.writes),
        TableNumber.FEED: [_feed(unit) for unit in units],
        TableNumber.DRAIN: [{name: unit[name] for name in ("drain", "table")} for unit in units],
        TableNumber.WEIGHTS: [_weights(command, program, config, taps, firsts) for command in matrix],
        TableNumber.WALKS: [_part(each, lambda name: name in VECTOR_WALKS) for each in fields],
        TableNumber.LOOPS: [_part(each, lambda name: name not in VECTOR_WALKS) for each in fields],
        TableNumber.ATTENTION: [
            attention_fields(config.attention, each) for each in commands_of(program, AttentionCommand)
        ],
        TableNumber.CHANNELS: _channels(program, config, places.channels),
        **{number: _slots(number, rows, config) for number, rows in rams.items()},
    }


def _steps(program: NetworkProgram) -> list[Row]:
    return [
        {
            "core": int(step.core),
            "wait": {
                "needs": {"finished": [*step.waits], "writes": step.wait_writes, "reads": step.wait_reads},
                "item": {"follow": follow_fields(step.follow)},
            },
        }
        for step in program.steps
    ]


def _transfers(transfers: Iterable[Transfer]) -> list[Row]:
    return [
        {
            "needs": {"finished": [*transfer.starts], "others": transfer.others},
            "item": {
                "dram": transfer.dram_address,
                "address": transfer.address,
                "words": transfer.words,
            },
        }
        for transfer in transfers
    ]


def _reads(transfers: tuple[Transfer, ...]) -> list[Row]:
    """Return transfers to the scratchpad; those of whole words gather no rows."""
    found: list[Row] = []
    for transfer, row in zip(transfers, _transfers(transfers), strict=True):
        rows, gather = transfer.gathered, {"some": 0, "rows": 0, "table": 0, "last": 0}
        words = transfer.words
        if rows is not None:
            gather = {"some": 1, "rows": rows.rows, "table": rows.table, "last": rows.table_rows - 1}
            words //= rows.rows
        found.append({"needs": row["needs"], "item": {**row["item"], "words": words, "gather": gather}})
    return found


def _feed(unit: Row) -> Row:
    first, second = unit["feeds"]
    return {"first": first, "second": {name: second[name] for name in SECOND_FEED}, "two": unit["two"]}


def _weights(
    command: MatrixCommand,
    program: NetworkProgram,
    config: NetworkConfig,
    taps: Blocks[MatrixCommand],
    firsts: list[int],
) -> Row:
    weights = unit_weights(command, config.matrix, first=firsts[command.weights])
    words = len(program.passes[command.weights]) * config.matrix.lines
    assert weights["words"]["words"] == words
    run = {"first": taps.place(command), "count": command.taps, "two": int(command.halves)}
    return {"weights": weights, "taps": run}


def _channels(
    program: NetworkProgram, config: NetworkConfig, channels: Mapping[tuple[int, int], int]
) -> list[Row]:
    """Return the records of channels' factors, without lanes that results of int16 do not use."""
    found = []
    for (norm, bits), row in channels.items():
        slots = channel_slots(config.vector, program.norms[norm], bits=bits)
        for first in range(0, len(slots), config.lanes):
            used = slots[first : first + config.lanes * 8 // bits]
            place = config.lanes * row + first
            found += _slots(TableNumber.CHANNELS, used, config, first=place)
    return found


def _part(fields: Row, chosen: Callable[[str], bool]) -> Row:
    return {name: value for name, value in fields.items() if chosen(name)}


def _slots(number: TableNumber, rows: list[Any], config: NetworkConfig, *, first: int = 0) -> list[Row]:
    """Return neighbouring rows of a RAM, from row ``first`` on, as records."""
    layout = ram_layout(number, config)
    assert layout.size <= SLOT_BITS
    found: list[Row] = []
    for at in range(0, len(rows), SLOTS):
        some = [bits_of(layout, {"row": row}) for row in rows[at : at + SLOTS]]
        slots = some + [0] * (SLOTS - len(some))
        found.append({"first": first + at, "count": len(some), "slots": slots})
    return found
