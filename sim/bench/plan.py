"""What the driver asks of a simulation, and what it answers: JSON and .npy files in one folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sim.host.files import write_text

PLAN_FILE = "plan.json"
ANSWER_FILE = "answer.json"
PROGRESS_FILE = "progress"

#: Bytes watched on both sides of every buffer: a kernel that writes outside its buffers is found out.
GUARD_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class PlacedBuffer:
    """A buffer with its place.

    Members
    -------
    argument
        Name of the pointer in the argument table.
    memory
        Name of the memory it is in.
    address
        Of its first byte, in the memory's address space.
    size_bytes
        Its length.
    output
        Whether the kernel writes it. Otherwise its bytes are in ``<argument>.npy``, and must not change.
    """

    argument: str
    memory: str
    address: int
    size_bytes: int
    output: bool

    @property
    def file(self) -> str:
        """Name of its file: what is placed there, or what the kernel left there."""
        return f"{self.argument}.npy"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One kernel call.

    Members
    -------
    writes
        Registers to write before the start: byte offset and 32-bit value.
    counters
        Registers to read after the end: byte offset of the 64-bit register, by name.
    buffers
        What stands behind the pointers.
    memories
        Names of all memories.
    cycle_limit
        Cycles after which a kernel that has not finished is given up.
    """

    writes: tuple[tuple[int, int], ...]
    counters: Mapping[str, int]
    buffers: tuple[PlacedBuffer, ...]
    memories: tuple[str, ...]
    cycle_limit: int

    def save(self, directory: Path) -> None:
        """Write the plan where the simulation looks for it."""
        write_text(directory / PLAN_FILE, json.dumps(asdict(self)))

    @classmethod
    def load(cls, directory: Path) -> Plan:
        """Read what `save` wrote."""
        data = json.loads((directory / PLAN_FILE).read_text())
        data["buffers"] = tuple(PlacedBuffer(**buffer) for buffer in data["buffers"])
        data["writes"] = tuple((offset, value) for offset, value in data["writes"])
        data["memories"] = tuple(data["memories"])
        return cls(**data)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of a kernel call.

    Members
    -------
    counters
        The kernel's counters.
    cycles_start_to_done
        Cycles from the write of the start bit to the interrupt.
    cycles_simulated
        All cycles, with reset and register access.
    simulation_seconds
        Wall time from the first to the last of those cycles.
    memories
        Counters of each memory model, by the memory's name.
    violations
        Broken rules: of the AXI protocol, of guard bytes, of input buffers. Empty when all is well.
    """

    counters: Mapping[str, int]
    cycles_start_to_done: int
    cycles_simulated: int
    simulation_seconds: float
    memories: Mapping[str, Any]
    violations: tuple[str, ...]

    def save(self, directory: Path) -> None:
        """Write the answer where the driver looks for it."""
        write_text(directory / ANSWER_FILE, json.dumps(asdict(self)))

    @classmethod
    def load(cls, directory: Path) -> Answer:
        """Read what `save` wrote."""
        data = json.loads((directory / ANSWER_FILE).read_text())
        data["violations"] = tuple(data["violations"])
        return cls(**data)
