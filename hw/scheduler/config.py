"""Shape of the scheduler's hardware: a program, and the scratchpad it runs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from amaranth.utils import bits_for

from hw.errors import InputError
from hw.scheduler.program.program import MAX_CORES, OperandWord, Program, TransferWord

#: Most scratchpad: what a 32-bit byte address reaches, far more than any device has.
MAX_SCRATCHPAD_BYTES = 2**32


@dataclass(frozen=True, kw_only=True)
class SchedulerConfig:
    """Shape of the scheduler's hardware.

    Parameters
    ----------
    program : Program
        What it executes: fixed before synthesis.
    scratchpad_bytes : int
        Size of the scratchpad, a multiple of ``banks`` words.
    word_bytes : int
        Width of the scratchpad and of the memory port: the board's, and the program's.
    banks : int
        Banks of the scratchpad, each with a read and a write a cycle; word ``a`` lies in bank ``a % banks``.
        A power of two from 2 to 32; twice the ``cores`` plus two or more keep every client at its rate.
    memory : str
        ``"ultra"`` or ``"block"``: what the banks are made of.
    cores : int
        Operator ports, 1 to 4; those of a pipelined step form a chain.
    """

    program: Program
    scratchpad_bytes: int = 1 << 20
    word_bytes: int = 32
    banks: int = 8
    memory: Literal["ultra", "block"] = "ultra"
    cores: int = 2

    def __post_init__(self) -> None:
        if self.word_bytes != self.program.word_bytes:
            raise InputError("word_bytes", self.word_bytes, f"{self.program.word_bytes}, as of the program")
        if not isinstance(self.banks, int) or not 2 <= self.banks <= 32 or self.banks & (self.banks - 1):
            raise InputError("banks", self.banks, "a power of two from 2 to 32")
        if self.memory not in ("ultra", "block"):
            raise InputError("memory", self.memory, "one of ultra, block")
        if not isinstance(self.cores, int) or not self.program.cores <= self.cores <= MAX_CORES:
            raise InputError(
                "cores", self.cores, f"from {self.program.cores}, what the program needs, to {MAX_CORES}"
            )
        step = self.banks * self.word_bytes
        if (
            not isinstance(self.scratchpad_bytes, int)
            or not 2 * step <= self.scratchpad_bytes <= MAX_SCRATCHPAD_BYTES
            or self.scratchpad_bytes % step
        ):
            raise InputError(
                "scratchpad_bytes",
                self.scratchpad_bytes,
                f"a multiple of {step}, a word a bank, of at least {2 * step}",
            )
        need = self.program.scratchpad_words * self.word_bytes
        if need > self.scratchpad_bytes:
            raise InputError(
                "scratchpad_bytes", self.scratchpad_bytes, f"at least {need}, what the program uses"
            )

    @property
    def word_bits(self) -> int:
        """Bits of a word."""
        return 8 * self.word_bytes

    @property
    def words(self) -> int:
        """Words of the scratchpad."""
        return self.scratchpad_bytes // self.word_bytes

    @property
    def bank_rows(self) -> int:
        """Words of one bank."""
        return self.words // self.banks

    @property
    def address_bits(self) -> int:
        """Bits of a word's address in the scratchpad."""
        return bits_for(self.words - 1)

    @property
    def size_bits(self) -> int:
        """Bits of the words of an operand, a transfer or a ring."""
        program = self.program
        sizes: tuple[OperandWord | TransferWord, ...] = (
            *program.operands,
            *program.reads,
            *program.writes,
        )
        return bits_for(max(max(item.words, item.ring) for item in sizes))

    @property
    def total_bits(self) -> int:
        """Bits of the words of all inputs, or all outputs, of one operator."""
        program = self.program
        cores = [core for step in program.steps for core in step.cores]
        lists = [(program.inputs_of(core), program.outputs_of(core)) for core in cores]
        return bits_for(max(sum(item.words for item in items) for pair in lists for items in pair))

    @property
    def dram_bits(self) -> int:
        """Bits of a word's address in the program's region of the memory."""
        return bits_for(self.program.memory_words)

    @property
    def step_bits(self) -> int:
        """Bits of a count of steps."""
        return bits_for(len(self.program.steps))

    @property
    def transfer_bits(self) -> int:
        """Bits of a count of transfers of one direction."""
        return bits_for(max(len(self.program.reads), len(self.program.writes)))
