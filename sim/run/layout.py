"""Memory addresses of the buffers of a launch, and the register values that follow from them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.errors import InputError, check_range
from hw.launch import Buffer, Launch
from hw.lib.arguments import POINTER_ALIGN_BYTES, ArgumentKind, ArgumentTable
from sim.bench.plan import GUARD_BYTES, PlacedBuffer
from sim.run.memories import memory_of_port

_LINK_BYTES = 8


def place_buffers(
    launch: Launch, table: ArgumentTable, placement: Mapping[str, int], board: Board
) -> tuple[PlacedBuffer, ...]:
    """Lay the buffers into the channels their ports are connected to, one after another, guards between.

    Raises `InputError` when the launch and the table do not fit together, or a channel is too small.
    """
    ports = {argument.name: argument.port for argument in table.call if argument.kind is ArgumentKind.POINTER}
    names = sorted([*(buffer.argument for buffer in launch.buffers), *launch.nulls])
    if names != sorted(ports):
        raise InputError("buffers of the launch", names, f"one a pointer: {sorted(ports)}")
    used: dict[tuple[str, int], int] = {}
    placed = []
    for buffer in launch.buffers:
        port = ports[buffer.argument]
        assert port is not None  # a pointer has a port: `Argument` sees to it
        memory, channel = memory_of_port(port, board), placement[port]
        check_range(f"bytes of buffer {buffer.argument}", buffer.size_bytes, 1)
        first = used.get((memory.name, channel), 0) + GUARD_BYTES
        end = first + buffer.size_bytes + GUARD_BYTES
        if end > memory.channel_bytes:
            room = memory.channel_bytes - first - GUARD_BYTES
            raise InputError(
                f"bytes of buffer {buffer.argument}",
                buffer.size_bytes,
                f"at most {room}, the room left in channel {channel} of {memory.name}",
            )
        used[memory.name, channel] = -(-end // POINTER_ALIGN_BYTES) * POINTER_ALIGN_BYTES
        placed.append(
            PlacedBuffer(
                argument=buffer.argument,
                memory=memory.name,
                address=channel * memory.channel_bytes + first,
                size_bytes=buffer.size_bytes,
                output=buffer.output,
            )
        )
    return tuple(placed)


def register_writes(
    launch: Launch, table: ArgumentTable, buffers: tuple[PlacedBuffer, ...]
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return for each call every write of an argument register: byte offset and 32-bit word.

    Raises `InputError` when a scalar is missing, an argument unknown, or a number wider than its register.
    """
    scalars = sorted(argument.name for argument in table.call if argument.kind is ArgumentKind.SCALAR)
    if sorted(launch.scalars) != scalars:
        raise InputError("scalars of the launch", sorted(launch.scalars), f"those of the table: {scalars}")
    addresses = {buffer.argument: buffer.address for buffer in buffers}
    values = {**launch.scalars, **dict.fromkeys(launch.nulls, 0), **addresses}
    further = [
        {name: 0 if number is None else addresses.get(name, 0) + number for name, number in call.items()}
        for call in launch.then
    ]
    for call in further:
        if not call.keys() <= values.keys():
            raise InputError("arguments of a further call", sorted(call), f"among {sorted(values)}")
    return tuple(_words(call, table) for call in (values, *further))


def _words(values: Mapping[str, int], table: ArgumentTable) -> tuple[tuple[int, int], ...]:
    """Return the writes of one call."""
    words = []
    for register in table.registers:
        name, bits = register.argument.name, register.argument.bits
        if name not in values:
            continue
        value = int(values[name])
        if not -(1 << (bits - 1)) <= value < 1 << bits:
            raise InputError(f"argument {name}", value, f"a number of {bits} bit")
        words += [(register.offset + 4 * n, value >> (32 * n) & 0xFFFFFFFF) for n in range(bits // 32)]
    return tuple(words)


def linked(buffer: Buffer, placed: tuple[PlacedBuffer, ...]) -> NDArray[np.uint8]:
    """Return the data of ``buffer`` with the addresses that its links name.

    Raises `InputError` when a link is not within the data, or to a buffer that is not placed.
    """
    assert buffer.data is not None  # checked by the caller
    data = buffer.data
    if buffer.links:
        data = data.copy()
        addresses = {other.argument: other.address for other in placed}
        for offset, argument in buffer.links:
            if argument not in addresses:
                raise InputError(f"link of {buffer.argument}", argument, "a buffer of the launch")
            if not 0 <= offset <= data.size - _LINK_BYTES:
                raise InputError(f"link of {buffer.argument}", offset, f"within its {data.size} bytes")
            word = data[offset : offset + _LINK_BYTES]
            address = int.from_bytes(word.tobytes(), "little") + addresses[argument]
            word[:] = np.frombuffer(address.to_bytes(_LINK_BYTES, "little"), np.uint8)
    return data
