"""Arrays of the cycle model: the program, and the state of the hardware."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.program.program import Via

Integers = NDArray[np.int64]

#: The values of `Via` as integers.
WHOLE, MEMORY, FIFO = map(int, Via)
#: Rings by their ends: memory to core, core to memory, core to the next core.
IN, OUT, NEXT = 0, 1, 2


class ProgramArrays(NamedTuple):
    """A program as arrays."""

    steps: Integers  #: ``[steps, 3]``: reads and writes waited for, cores.
    #: ``[steps, cores, 6]``: words in, words out, least cycles, and the indices of the first input, of the
    #: first output and past the last output.
    cores: Integers
    operands: Integers  #: ``[operands, 3]``: words, `Via`, ring.
    #: ``reads``, ``writes``: ``[transfers, 5]``: words, start step, ring, core, first word in memory.
    reads: Integers
    writes: Integers


class HardwareState(NamedTuple):
    """State: cores, rings and their changes in this cycle, engines, queues by transfer and by word."""

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
