"""A program of the sequencer: a plan lowered to table rows, as plain data.

`hw.scheduler.program.lower` makes a program from a plan; `hw.scheduler.program.image` encodes it for loading
at launch.  All addresses and sizes are in words of ``word_bytes``.

The four phases of step ``s`` (`hw.scheduler`), as the hardware times them:

1. the slot begins when ``wait_writes`` write transfers are complete (AXI responses received);
2. from then on, reads with ``start_step <= s`` may run, and writes that are streams of step ``s``;
3. the cores start when ``wait_reads`` read transfers are complete (last word in the scratchpad);
4. when every core of the step is done, other writes with ``start_step <= s`` may run.

Each of the two transfer engines runs its list strictly in order and compares no addresses.  A count of
completed transfers means that many from the front of the list.  Reads are issued as soon as their transfer
may run.  So a read of a spilled tensor needs a ``start_step`` no earlier than the step that waits for the
write.

A core consumes its inputs in the listed order, and produces its outputs in the listed order.  An operand is
**whole** in the scratchpad, or streams through a **ring** of it.  Word ``k`` of a ring operand lies at
``address + k % ring``.  It is written while fewer than ``ring`` earlier words are unconsumed, and read after
it was written.  The other end of a ring is a transfer engine (``Via.MEMORY``) or the neighbouring core
(``Via.FIFO``, from core ``c`` to ``c + 1``).
"""

import enum
from dataclasses import dataclass

from hw.errors import InputError, check_range, check_whole
from hw.scheduler.program.dataflow import Dataflow

#: Bits of an operator's number, of a count of operands, and of least cycles.
OPERATOR_BITS = 16
COUNT_BITS = 12
CYCLES_BITS = 32
#: Most cores that can share a step.
MAX_CORES = 4


class Via(enum.IntEnum):
    """The path of an operand to or from a core; the values are those of the program image."""

    WHOLE = 0
    MEMORY = 1
    FIFO = 2


@dataclass(frozen=True, kw_only=True)
class OperandWord:
    """One operand of one core in one step."""

    address: int  #: First word of the operand, or of its ring, in the scratchpad.
    words: int  #: Words of the operand, at least 1.
    via: Via = Via.WHOLE
    ring: int = 0  #: Words of the ring; 0 for a whole operand.

    def __post_init__(self) -> None:
        check_whole("address of an operand", self.address, 0)
        check_whole("words of an operand", self.words, 1)
        if (self.via is Via.WHOLE) != (self.ring == 0):
            raise InputError("ring of an operand", self.ring, "0 for a whole operand, else at least 1")
        check_whole("ring of an operand", self.ring, 0)

    @property
    def span(self) -> int:
        """Words of the scratchpad it occupies."""
        return self.ring or self.words


@dataclass(frozen=True, kw_only=True)
class CoreWord:
    """The work of one core in one step."""

    operator: int  #: Number of the operator; equal numbers compute the same function.
    #: ``inputs``, ``outputs``: in order; at least one output.
    inputs: tuple[OperandWord, ...]
    outputs: tuple[OperandWord, ...]
    compute_cycles: int = 0  #: Least cycles from start to done.

    def __post_init__(self) -> None:
        for name, value, least, bits in (
            ("operator", self.operator, 0, OPERATOR_BITS),
            ("inputs", len(self.inputs), 0, COUNT_BITS),
            ("outputs", len(self.outputs), 1, COUNT_BITS),
            ("compute_cycles", self.compute_cycles, 0, CYCLES_BITS),
        ):
            check_whole(name, value, least)
            if value >> bits:
                raise InputError(name, value, f"less than 2^{bits}")

    @property
    def operands(self) -> tuple[OperandWord, ...]:
        """Its inputs, then its outputs."""
        return self.inputs + self.outputs

    @property
    def words_in(self) -> int:
        """Words of all inputs."""
        return sum(operand.words for operand in self.inputs)

    @property
    def words_out(self) -> int:
        """Words of all outputs."""
        return sum(operand.words for operand in self.outputs)


@dataclass(frozen=True, kw_only=True)
class StepWord:
    """One step."""

    cores: tuple[CoreWord, ...]  #: Active cores, core 0 first.
    #: Write transfers, from the front of their list, that must complete before the slot begins.
    wait_writes: int = 0
    #: Read transfers, from the front of their list, that must complete before the cores start.
    wait_reads: int = 0

    def __post_init__(self) -> None:
        check_range("cores of a step", len(self.cores), 1, MAX_CORES)


@dataclass(frozen=True, kw_only=True)
class TransferWord:
    """One transfer; its list determines its direction."""

    dram_address: int  #: First word of its home, relative to the program's base in memory.
    address: int  #: First word in the scratchpad, or of the ring.
    words: int
    #: First step in which it may run: reads and streams from the slot's beginning, other writes from the
    #: step's end.
    start_step: int
    ring: int = 0  #: Words of the ring of a stream; 0 for a transfer of a whole tensor.
    core: int = 0  #: For a stream: the core whose operand it is.

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_whole(f"{name} of a transfer", value, int(name == "words"))
        if self.core >= MAX_CORES or (self.core and not self.ring):
            raise InputError(
                "core of a transfer", self.core, f"less than {MAX_CORES}, and 0 unless it is a stream"
            )

    @property
    def span(self) -> int:
        """Words of the scratchpad it occupies."""
        return self.ring or self.words


@dataclass(frozen=True, kw_only=True)
class SchedulerProgram:
    """A whole program.

    Notes
    -----
    The hardware deadlocks on three mistakes: a count of transfers that cannot complete in time, a stream
    without an operand, and streams of several cores that wait for each other.  `hw.scheduler.check` refuses
    such a plan, `hw.scheduler.program.timing.timeline.predict` such a program.
    """

    word_bytes: int  #: Bytes of a word: the hardware's.
    steps: tuple[StepWord, ...]  #: At least one.
    #: ``reads``, ``writes``: in order of execution.
    reads: tuple[TransferWord, ...] = ()
    writes: tuple[TransferWord, ...] = ()
    #: The function it computes, for the golden model; the hardware does not need it.
    dataflow: Dataflow | None = None

    def __post_init__(self) -> None:
        if not self.steps:
            raise InputError("steps of a program", 0, "at least one")

    @property
    def operands(self) -> tuple[OperandWord, ...]:
        """Operands of all cores of all steps."""
        return tuple(operand for step in self.steps for core in step.cores for operand in core.operands)

    @property
    def cores(self) -> int:
        """Cores it needs."""
        return max(len(step.cores) for step in self.steps)

    @property
    def scratchpad_words(self) -> int:
        """Words of the scratchpad up to the last one used."""
        words: tuple[OperandWord | TransferWord, ...] = (*self.operands, *self.reads, *self.writes)
        return max(word.address + word.span for word in words)

    @property
    def memory_words(self) -> int:
        """Words of the memory up to the last one used; at least 1."""
        return max((word.dram_address + word.words for word in (*self.reads, *self.writes)), default=1)

    @property
    def read_bytes(self) -> int:
        """Bytes it reads from memory."""
        return self.word_bytes * sum(transfer.words for transfer in self.reads)

    @property
    def write_bytes(self) -> int:
        """Bytes it writes to memory."""
        return self.word_bytes * sum(transfer.words for transfer in self.writes)
