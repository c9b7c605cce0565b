"""The driver's orders for a simulation, and its answers: JSON and .npy files in one folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sim.host.files import write_text

PLAN_FILE = "plan.json"
ANSWER_FILE = "answer.json"
PROGRESS_FILE = "progress"

#: Bytes watched on both sides of every buffer: a kernel that writes outside its buffers is found out. The two
#: between neighbours are whole rows of all banks of a channel, 16 KiB on HBM and 128 KiB on DDR4.  So buffers
#: share banks as if they lay page behind page.
GUARD_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class PlacedBuffer:
    """A buffer and its address."""

    argument: str  #: Name of the pointer in the argument table.
    memory: str  #: Name of the memory it is in.
    address: int  #: Of its first byte, in the memory's address space.
    size_bytes: int  #: Its length.
    #: Whether it is read back. Otherwise its bytes are in ``<argument>.npy`` and must not change; where there
    #: is no such file, it is the kernel's own.
    output: bool

    @property
    def file(self) -> str:
        """Name of the file with its content before or after the call."""
        return f"{self.argument}.npy"


@dataclass(frozen=True, kw_only=True)
class BenchPlan:
    """Kernel calls, one after the other without reset."""

    #: Of each call the registers to write before the start: byte offset and 32-bit value.
    calls: Sequence[Sequence[tuple[int, int]]]
    #: Registers to read after the end: byte offset of the 64-bit register, by name.
    counters: Mapping[str, int]
    buffers: Sequence[PlacedBuffer]  #: The buffers behind the pointers.
    memories: Sequence[str]  #: Names of all memories.
    #: Bursts that are answered with an error: number of the call, memory, number of the port behind it,
    #: whether it is a write, and the number of such bursts before it in the call.
    refusals: Sequence[tuple[int, str, int, bool, int]] = ()
    cycle_limit: int  #: Cycles after which a kernel that has not finished a call is given up.

    def save(self, directory: Path) -> None:
        """Write the plan where the simulation looks for it."""
        write_text(directory / PLAN_FILE, json.dumps(asdict(self)))

    @classmethod
    def load(cls, directory: Path) -> BenchPlan:
        """Read the file of `save`."""
        data = json.loads((directory / PLAN_FILE).read_text())
        data["buffers"] = [PlacedBuffer(**buffer) for buffer in data["buffers"]]
        return cls(**data)


@dataclass(frozen=True, kw_only=True)
class Call:
    """The results of a kernel call."""

    counters: Mapping[str, int]  #: The kernel's counters.
    cycles_start_to_done: int  #: Cycles from the write of the start bit to the interrupt.
    #: Digest of each buffer that is read back, after the call, by argument; none where there is one call.
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The results of a plan."""

    calls: Sequence[Call]  #: In order.
    resets_between_calls: int  #: Times that reset came after the first call had begun.
    cycles_simulated: int  #: All cycles, with reset and register access.
    simulation_seconds: float  #: Wall time from the first to the last of those cycles.
    memories: Mapping[str, Any]  #: Counters of each memory model, by the memory's name.
    #: Broken rules: of the AXI protocol, of guard bytes, of input buffers. Empty when all is well.
    violations: Sequence[str]

    def save(self, directory: Path) -> None:
        """Write the answer where the driver looks for it."""
        write_text(directory / ANSWER_FILE, json.dumps(asdict(self)))

    @classmethod
    def load(cls, directory: Path) -> Answer:
        """Read the file of `save`."""
        data = json.loads((directory / ANSWER_FILE).read_text())
        data["calls"] = [Call(**call) for call in data["calls"]]
        return cls(**data)
