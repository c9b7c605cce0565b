"""A program of the kernel: commands in order, transfers, and all that commands refer to, as plain data.

Addresses and sizes of transfers are in words of `WORD_BYTES`.  A step is one command.  The transfers of a
plan's step begin with its first command and end with its last one.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.network.commands import MatrixCommand, TapTile, VectorCommand
from hw.network.compile.form import Form
from hw.network.graph.network import Value
from hw.scheduler.program.program import TransferWord


class Core(enum.IntEnum):
    """Units that execute commands."""

    MATRIX = 0
    VECTOR = 1


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command, and the transfers that it waits for."""

    command: MatrixCommand | VectorCommand
    operator: str  #: Name of the network's operator that it belongs to.
    planned: int  #: Number of the plan's step that it belongs to.
    wait_writes: int = 0  #: Writes, from the front of their list, complete before the step begins.
    wait_reads: int = 0  #: Reads, from the front of their list, complete before its command starts.
    macs: int = 0  #: Multiply-accumulates that its results need.

    @property
    def core(self) -> Core:
        """The unit that executes it."""
        return Core.MATRIX if isinstance(self.command, MatrixCommand) else Core.VECTOR


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
    #: ``reads``, ``writes``: in order of execution; ``ring`` and ``core`` are 0.
    reads: tuple[TransferWord, ...]
    writes: tuple[TransferWord, ...]
    taps: tuple[TapTile, ...]  #: Rows of the tap table, that commands refer to.
    passes: tuple[NDArray[np.uint8], ...]  #: Packets of weights, each of shape ``(beats, bytes of a beat)``.
    tables: tuple[NDArray[np.int8], ...]  #: 256 results each.
    exponentials: tuple[NDArray[np.int64], ...]  #: 256 exponentials each.
    #: Homes in memory, in the order of rows where a value is cut.
    inputs: tuple[Home, ...]
    constants: tuple[Home, ...]
    outputs: tuple[Home, ...]
    contents: Mapping[str, NDArray[np.int8]]  #: Elements of constants, by the value's name.
    parameter_bytes: int = 0  #: Of the network's weights, biases and scales, each once.

    @property
    def memory_words(self) -> int:
        """Words of the region up to the last one used; at least 1."""
        return max((each.dram_address + each.words for each in (*self.reads, *self.writes)), default=1)
