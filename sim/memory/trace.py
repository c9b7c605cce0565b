"""The file with every transfer at the ports of a memory, as the models write it (``trace.h``); its text."""

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from sim.host.files import write_text
from sim.host.paths import check_readable

#: Columns of the bus trace.
COLUMNS = ("cycle", "port", "direction", "address", "bytes")


class Channel(enum.IntEnum):
    """A channel of an AXI port."""

    AW = 0
    W = 1
    B = 2
    AR = 3
    R = 4


#: A transfer. ``cycle``: edges of the kernel's clock since the simulation began. ``address``: of the beat's
#: first byte, of the whole burst's for ``AR``, ``AW`` and ``B``. ``bytes``: of the beat on the bus, of the
#: burst for ``AR`` and ``AW``, 0 for ``B``. ``port``: its index among the memory's ports.
#: ``waited``: cycles in which it was offered and not taken.
TRANSFER = np.dtype(
    [
        ("cycle", "<u8"),
        ("address", "<u8"),
        ("bytes", "<u4"),
        ("port", "u1"),
        ("channel", "u1"),
        ("waited", "<u2"),
    ]
)


def read_trace(path: Path) -> NDArray[Any]:
    """Read the transfers of a run, in order of cycles: an array of `TRANSFER`.

    Raises `InputError` when the file is missing or no trace.
    """
    check_readable("trace", path)
    if path.stat().st_size % TRANSFER.itemsize:
        raise InputError("trace", str(path), f"of whole records of {TRANSFER.itemsize} bytes")
    return np.fromfile(path, TRANSFER)


def accesses(trace: NDArray[Any]) -> NDArray[Any]:
    """Return the reads and writes of a trace alone: the transfers of their addresses."""
    return trace[(trace["channel"] == Channel.AR) | (trace["channel"] == Channel.AW)]


def write_bus_trace(path: Path, trace: NDArray[Any], ports: Sequence[str]) -> None:
    """Write a line for each read and write of a trace; ``ports`` are those of the memory, in order.

    Raises `InputError` when the file cannot be written.
    """
    lines = [",".join(COLUMNS)]
    for cycle, address, size, port, channel, _ in accesses(trace).tolist():
        direction = "read" if channel == Channel.AR else "write"
        lines.append(f"{cycle},{ports[port]},{direction},0x{address:x},{size}")
    write_text(path, "\n".join(lines) + "\n")
