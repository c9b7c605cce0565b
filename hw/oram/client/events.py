"""Events of a journal as bytes: a kind, then fixed fields, the lowest byte first.

| kind | fields |
|---|---|
| B, begin | format 2, attempts 2, value bytes 2, key bits 2, slots 4, epoch 8, first number 8, mark 8 |
| L, loaded | none |
| C, call | origin 8, number 8, operations: code 1, key 8, value V |
| S, sent | count 4 |
| A, answered | outcomes: status 1, value V |
| R, remember | origin 8, number 8, checksum 4, outcomes |
| F, forget | origin 8 |
"""

import struct
import zlib
from collections.abc import Iterable, Sequence

from hw.oram.client.errors import JournalError
from hw.oram.client.operation import Call, Finished, Operation, Outcome
from hw.oram.client.state import Header, SessionState
from hw.oram.core.layouts import Code, Status

#: Number of this format. It changes with the text of commands too: the same text must be sealed again.
FORMAT = 1
_BEGIN = struct.Struct("<cHHHHIQQ8s")
_CALL = struct.Struct("<cQQ")
_OPERATION = struct.Struct("<BQ")
_SENT = struct.Struct("<cI")
_REMEMBER = struct.Struct("<cQQI")
_FORGET = struct.Struct("<cQ")


def begin(header: Header) -> bytes:
    """Return the event that begins a journal."""
    sizes = (header.attempts, header.value_bytes, header.key_bits, header.slots)
    return _BEGIN.pack(b"B", FORMAT, *sizes, header.epoch, header.first, header.mark)


def loaded() -> bytes:
    """Return the event of a loaded map."""
    return b"L"


def requested(call: Call) -> bytes:
    """Return the event of a call."""
    return _CALL.pack(b"C", call.origin, call.number) + pack_operations(call.operations)


def sent(count: int) -> bytes:
    """Return the event of operations that took numbers."""
    return _SENT.pack(b"S", count)


def answered(outcomes: Iterable[Outcome]) -> bytes:
    """Return the event of responses."""
    return b"A" + pack_outcomes(outcomes)


def remembered(origin: int, finished: Finished) -> bytes:
    """Return the event of a call that finished in an earlier journal."""
    head = _REMEMBER.pack(b"R", origin, finished.number, finished.checksum)
    return head + pack_outcomes(finished.outcomes)


def forgotten(origin: int) -> bytes:
    """Return the event of a client that is done."""
    return _FORGET.pack(b"F", origin)


def make_call(origin: int, number: int, operations: Sequence[Operation]) -> Call:
    """Return a call with the checksum of its operations."""
    return Call(origin, number, operations, zlib.crc32(pack_operations(operations)))


def pack_operations(operations: Iterable[Operation]) -> bytes:
    """Return operations as bytes."""
    return b"".join(_OPERATION.pack(code, key) + value for code, key, value in operations)


def unpack_operations(content: bytes, value_bytes: int) -> list[Operation]:
    """Undo `pack_operations`."""
    rows = _rows(content, _OPERATION.size + value_bytes)
    heads = [_OPERATION.unpack_from(row) for row in rows]
    return [
        Operation(Code(code), key, row[_OPERATION.size :])
        for (code, key), row in zip(heads, rows, strict=True)
    ]


def pack_outcomes(outcomes: Iterable[Outcome]) -> bytes:
    """Return outcomes as bytes."""
    return b"".join(bytes([status]) + value for status, value in outcomes)


def unpack_outcomes(content: bytes, value_bytes: int) -> list[Outcome]:
    """Undo `pack_outcomes`."""
    return [Outcome(Status(row[0]), row[1:]) for row in _rows(content, 1 + value_bytes)]


def read_header(event: bytes) -> Header:
    """Return the constants of a journal from its first event."""
    if len(event) != _BEGIN.size or event[:1] != b"B":
        raise JournalError("the journal has no beginning: load a new map")
    _, form, attempts, value_bytes, key_bits, slots, epoch, number, mark = _BEGIN.unpack(event)
    if form != FORMAT:
        raise JournalError(f"the journal has format {form}, not {FORMAT}: load a new map")
    return Header(
        epoch=epoch,
        mark=mark,
        slots=slots,
        value_bytes=value_bytes,
        key_bits=key_bits,
        attempts=attempts,
        first=number,
    )


def apply(state: SessionState, event: bytes) -> None:
    """Change the state by one event."""
    size = state.header.value_bytes
    match event[:1]:
        case b"L":
            state.load()
        case b"C":
            _, origin, number = _CALL.unpack_from(event)
            state.request(make_call(origin, number, unpack_operations(event[_CALL.size :], size)))
        case b"S":
            state.send(_SENT.unpack(event)[1])
        case b"A":
            state.answer(unpack_outcomes(event[1:], size))
        case b"R":
            _, origin, number, checksum = _REMEMBER.unpack_from(event)
            outcomes = unpack_outcomes(event[_REMEMBER.size :], size)
            state.remember(origin, Finished(number, checksum, tuple(outcomes)))
        case b"F":
            state.forget(_FORGET.unpack(event)[1])
        case kind:
            raise JournalError(f"the journal has an event of unknown kind {kind!r}: load a new map")


def _rows(content: bytes, size: int) -> list[bytes]:
    return [content[at : at + size] for at in range(0, len(content), size)]
