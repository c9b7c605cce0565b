"""A program in numbers, and what changes while it is executed: the arrays of the timing model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.program.program import Via

Integers = NDArray[np.int64]

#: What an operand goes through, as numbers.
WHOLE, MEMORY, FIFO = map(int, Via)
#: Rings by their ends: memory to core, core to memory, core to the next core.
IN, OUT, NEXT = 0, 1, 2


class Tables(NamedTuple):
    """A program in numbers."""

    steps: Integers  #: ``[steps, 3]``: reads and writes waited for, cores.
    #: ``[steps, cores, 6]``: words in, words out, least cycles, first input, first output, and the operand
    #: after the last output.
    cores: Integers
    operands: Integers  #: ``[operands, 3]``: words, way, ring.
    #: ``reads``, ``writes``: ``[transfers, 5]``: words, start step, ring, core, first word in memory.
    reads: Integers
    writes: Integers


class Parts(NamedTuple):
    """State: cores, rings and what changes in them this cycle, engines, queues by transfer and by word."""

    cores: Integers
    rings: Integers
    changes: Integers
    reader: Integers
    writer: Integers
    reading: Integers
    writing: Integers
    burst_words: Integers
    burst_cycle: Integers
    ready: Any
    sent: Integers
    released: Integers
    dram: Any
