"""A program of the kernel: commands in order, transfers, and all that commands refer to, as plain data.

Addresses and sizes of transfers are in words of `WORD_BYTES`.  A step is one command.  Steps are listed in an
order in which they may run one by one.  Each core starts its own in that order, as their waits allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.network.commands import Command, Core, Follow, TapTile, core_of
from hw.network.compile.form import Form
from hw.network.config import WORD_BYTES
from hw.network.graph.network import Value
from hw.network.normalization import ChannelRows

#: Bytes of the number of a row of a table.
NUMBER_BYTES = 4
#: Counts of finished commands, one a core.
Counts = tuple[int, ...]
NO_COUNTS: Counts = (0,) * len(Core)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command, and the events that it waits for.

    A command is finished when all its reads and writes are done.  Commands of a core finish in their order.
    """

    command: Command
    operator: str  #: Name of the network's operator that it belongs to.
    planned: int  #: Number of the plan's step that it belongs to.
    waits: Counts = (
        NO_COUNTS  #: Commands of each core, from the front of its list, finished before it starts.
    )
    wait_writes: int = 0  #: Writes, from the front of their list, complete before it starts.
    wait_reads: int = 0  #: Reads, from the front of their list, complete before it starts.
    follow: Follow | None = None  #: Of its gated reads.
    macs: int = 0  #: Multiply-accumulates that its results need.

    @property
    def core(self) -> Core:
        """The unit that executes it."""
        return core_of(self.command)


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Rows of a table in memory, whose numbers lie in memory, `NUMBER_BYTES` each."""

    rows: int  #: Rows that are read.
    table: int  #: First word of the table, relative to the program's base in memory.
    table_rows: int

    @property
    def number_words(self) -> int:
        """Words that hold the numbers."""
        return -(-self.rows * NUMBER_BYTES // WORD_BYTES)


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A transfer of whole words; its list determines its direction.

    Transfers of a direction start, and complete, in their order.

    A tensor need not end with a word.  Bytes of the last word behind its end have no specified value: those
    of a write are the ones that lie there in the scratchpad, maybe of another tensor or an earlier launch.
    No command and no host uses them.
    """

    dram_address: int  #: First word of its home or of its numbers, relative to the program's base in memory.
    address: int  #: First word in the scratchpad.
    words: int  #: Of the scratchpad, at least 1.
    starts: Counts = NO_COUNTS  #: Commands of each core finished before it starts.
    others: int = 0  #: Transfers of the other direction complete before it starts.
    gathered: Gathered | None = None  #: The words are rows of a table, in the order of their numbers.

    @property
    def home_words(self) -> int:
        """Words of its home, or of its numbers."""
        return self.words if self.gathered is None else self.gathered.number_words

    @property
    def moved_words(self) -> int:
        """Words that it moves at the memory."""
        return self.words if self.gathered is None else self.words + self.gathered.number_words

    @property
    def memory(self) -> NDArray[np.int64]:
        """Words of the memory that it writes, or may read: of a table all."""
        home = np.arange(self.dram_address, self.dram_address + self.home_words)
        if self.gathered is None:
            return home
        words = self.words // self.gathered.rows * self.gathered.table_rows
        return np.concatenate([home, np.arange(self.gathered.table, self.gathered.table + words)])


@dataclass(frozen=True, kw_only=True)
class Home:
    """Rows of a value in memory: a whole value, or a band of one that is cut."""

    value: Value
    form: Form
    address: int  #: Byte in the program's region, a multiple of a word.
    first_row: int  #: First of the form's rows.
    rows: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the rows."""
        return self.rows * self.form.row_granules * 16


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkProgram:
    """A whole program."""

    name: str
    columns: int  #: Of the array that the packets are made for.
    scratchpad_bytes: int  #: That the plan was made for.
    steps: tuple[Step, ...]  #: At least one.
    #: ``reads``, ``writes``: in order of execution.
    reads: tuple[Transfer, ...]
    writes: tuple[Transfer, ...]
    taps: tuple[TapTile, ...]  #: Rows of the tap table, that commands refer to.
    passes: tuple[NDArray[np.uint8], ...]  #: Packets of weights, each of shape ``(beats, bytes of a beat)``.
    tables: tuple[NDArray[np.int8], ...]  #: 256 results each.
    exponentials: tuple[NDArray[np.int64], ...]  #: 256 exponentials each.
    #: Homes in memory, in the order of rows where a value is cut.
    inputs: tuple[Home, ...]
    constants: tuple[Home, ...]
    outputs: tuple[Home, ...]
    contents: Mapping[str, NDArray[Any]]  #: Elements of constants, by the value's name.
    norms: tuple[ChannelRows, ...] = ()  #: Factors of the channels of LayerNorms.
    parameter_bytes: int = 0  #: Of the network's weights, biases and scales, each once.

    @property
    def memory_words(self) -> int:
        """Words of the region up to the last one used; at least 1."""
        return max((int(each.memory.max()) + 1 for each in (*self.reads, *self.writes)), default=1)
