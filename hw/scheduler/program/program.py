"""What the sequencer executes: a plan lowered to rows of tables, as plain data.

`hw.scheduler.program.lower` makes a program from a plan; `hw.scheduler.program.image` lays it out in memory,
from where the gates load it at launch.  All addresses and sizes are in words of ``word_bytes``.

The four phases of step ``s`` (`hw.scheduler`), as the gates time them:

1. the slot begins when ``wait_writes`` write transfers are complete (their responses have come);
2. from then on a read transfer with ``start_step <= s`` may run, and so may a write transfer that is a stream
   of step ``s``;
3. the cores start when ``wait_reads`` read transfers are complete (their last word is in the scratchpad);
4. when every core of the step is done, write transfers with ``start_step <= s`` that are no streams may run.

Each of the two transfer engines runs its list strictly in order and never looks at addresses: "complete"
means "so many from the front of the list".  A word of memory is read no earlier than its transfer may run, so
a read of what an earlier transfer wrote needs a ``start_step`` no earlier than the step that waits for the
write.

A core consumes its inputs one after the other as listed, and makes its outputs one after the other.  An
operand is **whole** in the scratchpad, or passes through a **ring** of it: word ``k`` lies at
``address + k % ring``, is written when fewer than ``ring`` words before it are not consumed yet, and is read
when it was written.  The other end of a ring is a transfer engine (``Via.MEMORY``) or the neighbouring core
(``Via.FIFO``, from core ``c`` to ``c + 1``).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from hw.errors import InputError
from hw.scheduler.program.dataflow import Dataflow

#: Bits of an operator's number, of the counts of a core's operands, and of its least cycles.
OPERATOR_BITS = 16
COUNT_BITS = 12
CYCLES_BITS = 32
#: Most cores that can share a step.
MAX_CORES = 4


class Via(enum.IntEnum):
    """How an operand reaches a core or leaves it; the values are those of the program image."""

    WHOLE = 0
    MEMORY = 1
    FIFO = 2


@dataclass(frozen=True, kw_only=True)
class OperandWord:
    """One operand of one core in one step."""

    address: int  #: Its first word, or its ring's, in the scratchpad.
    words: int  #: Words of the operand, at least 1.
    via: Via = Via.WHOLE
    ring: int = 0  #: Words of the ring; 0 for a whole operand.

    def __post_init__(self) -> None:
        _whole("address of an operand", self.address, 0)
        _whole("words of an operand", self.words, 1)
        if (self.via is Via.WHOLE) != (self.ring == 0):
            raise InputError("ring of an operand", self.ring, "0 for a whole operand, else at least 1")
        _whole("ring of an operand", self.ring, 0)

    @property
    def span(self) -> int:
        """Words of the scratchpad it takes."""
        return self.ring or self.words


@dataclass(frozen=True, kw_only=True)
class CoreWord:
    """What one core does in one step."""

    operator: int  #: Number of the operator; equal numbers compute the same function.
    #: ``inputs``, ``outputs``: in the order it takes them; at least one output.
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
            _whole(name, value, least)
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

    cores: tuple[CoreWord, ...]  #: Core 0 first; as many as take part.
    #: Write transfers, from the front of their list, that are complete before the slot begins.
    wait_writes: int = 0
    #: Read transfers, from the front of their list, that are complete before the cores start.
    wait_reads: int = 0

    def __post_init__(self) -> None:
        if not 1 <= len(self.cores) <= MAX_CORES:
            raise InputError("cores of a step", len(self.cores), f"from 1 to {MAX_CORES}")


@dataclass(frozen=True, kw_only=True)
class TransferWord:
    """One transfer; the direction is that of the list it stands in."""

    dram_address: int  #: First word of its home, counted from the program's base in memory.
    address: int  #: First word in the scratchpad, or of the ring.
    words: int
    #: The transfer may run from this step on: from the beginning of its slot for reads and streams, from its
    #: end for other writes.
    start_step: int
    ring: int = 0  #: Words of the ring of a stream; 0 for a transfer of a whole tensor.
    core: int = 0  #: For a stream: the core whose operand it is.

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            _whole(f"{name} of a transfer", value, int(name == "words"))
        if self.core >= MAX_CORES or (self.core and not self.ring):
            raise InputError(
                "core of a transfer", self.core, f"less than {MAX_CORES}, and 0 unless it is a stream"
            )

    @property
    def span(self) -> int:
        """Words of the scratchpad it takes."""
        return self.ring or self.words


@dataclass(frozen=True, kw_only=True)
class SchedulerProgram:
    """A whole program.

    Notes
    -----
    The gates wait for ever for a count of transfers that cannot be complete by then, a stream that no operand
    takes, and streams of several cores of a step that wait for each other.  `hw.scheduler.check` refuses the
    plan of such a program, `hw.scheduler.program.timing.timeline.predict` the program itself.
    """

    word_bytes: int  #: Bytes of a word: the hardware's.
    steps: tuple[StepWord, ...]  #: At least one.
    #: ``reads``, ``writes``: in the order their engine runs them.
    reads: tuple[TransferWord, ...] = ()
    writes: tuple[TransferWord, ...] = ()
    #: What it is to compute, for whoever judges a run; the gates do not need it.
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
        """Words of the scratchpad up to the last one it touches."""
        words: tuple[OperandWord | TransferWord, ...] = (*self.operands, *self.reads, *self.writes)
        return max(word.address + word.span for word in words)

    @property
    def memory_words(self) -> int:
        """Words of the memory up to the last one it touches; at least 1."""
        return max((word.dram_address + word.words for word in (*self.reads, *self.writes)), default=1)

    @property
    def read_bytes(self) -> int:
        """Bytes it reads from memory."""
        return self.word_bytes * sum(transfer.words for transfer in self.reads)

    @property
    def write_bytes(self) -> int:
        """Bytes it writes to memory."""
        return self.word_bytes * sum(transfer.words for transfer in self.writes)


def _whole(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(name, value, f"a whole number of at least {least}")
