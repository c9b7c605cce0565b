"""The bus trace as a user reads it: every access to host memory, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.host.files import write_text
from sim.memory.trace import Channel, accesses

COLUMNS = ("cycle", "port", "direction", "address", "bytes")


def write_bus_trace(path: Path, trace: NDArray[Any], ports: Sequence[str]) -> None:
    """Write the reads and writes of a trace (`sim.memory.trace.read_trace`); ``ports`` are those of the
    host's memory, in order.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    lines = [",".join(COLUMNS)]
    for cycle, address, size, port, channel, _ in accesses(trace).tolist():
        direction = "read" if channel == Channel.AR else "write"
        lines.append(f"{cycle},{ports[port]},{direction},0x{address:x},{size}")
    write_text(path, "\n".join(lines) + "\n")


def page_bytes(trace: NDArray[Any], pages: range) -> Mapping[str, int]:
    """Give the bytes read and written of the addresses ``pages``."""
    found = accesses(trace)
    found = found[(found["address"] >= pages.start) & (found["address"] < pages.stop)]
    reads = found["channel"] == Channel.AR
    return {
        "read": int(np.sum(found["bytes"][reads], dtype=np.int64)),
        "write": int(np.sum(found["bytes"][~reads], dtype=np.int64)),
    }
