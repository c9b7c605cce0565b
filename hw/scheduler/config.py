"""Shape of the scheduler's hardware: the scratchpad, and the largest program it can hold."""

from dataclasses import dataclass
from typing import Literal

from amaranth.utils import bits_for

from hw.errors import (
    InputError,
    check_field_types,
    check_one_of,
    check_power_of_two,
    check_range,
)
from hw.scheduler.program.image import (
    DRAM_BITS,
    INDEX_BITS,
    SCRATCHPAD_ADDRESS_BITS,
    WORDS_BITS,
    TableNumber,
    table_rows,
)
from hw.scheduler.program.program import MAX_CORES, SchedulerProgram


@dataclass(frozen=True, kw_only=True)
class SchedulerConfig:
    """Shape of the scheduler's hardware."""

    scratchpad_bytes: int = 1 << 20  #: Size of the scratchpad, a multiple of ``banks`` words.
    #: Width of the scratchpad and of the memory port: the board's. A power of two from 4 to 128.
    word_bytes: int = 32
    #: Banks of the scratchpad, each with a read and a write a cycle; word ``a`` lies in bank ``a % banks``. A
    #: power of two from 2 to 32; ``2 * cores + 2`` or more sustain a word a cycle on every port.
    banks: int = 8
    #: Banks of UltraRAM (``"ultra"``) or block RAM (``"block"``).
    memory: Literal["ultra", "block"] = "ultra"
    cores: int = 2  #: Operator ports, 1 to 4; those of a pipelined step form a chain.
    max_steps: int = 1024  #: Most steps of a program.
    max_operands: int = 2048  #: Most operands that one core reads in a program, and that it writes.
    max_transfers: int = 2048  #: Most transfers of a program in one direction.
    #: Most bytes that an operator reads, that it writes, and that a transfer moves.
    max_operator_bytes: int = 1 << 27
    max_region_bytes: int = 1 << 32  #: Most bytes of a program's region of the memory.
    #: A program frozen in ROMs before synthesis; None for a kernel that loads one at each launch.
    program: SchedulerProgram | None = None

    def __post_init__(self) -> None:
        check_field_types(self)
        check_power_of_two("word_bytes", self.word_bytes, 4, 128)
        check_power_of_two("banks", self.banks, 2, 32)
        check_one_of("memory", self.memory, ("ultra", "block"))
        word = self.word_bytes
        step = self.banks * word
        if self.scratchpad_bytes % step:
            legal = f"a multiple of {step}, a word a bank"
            raise InputError("scratchpad_bytes", self.scratchpad_bytes, legal)
        for name, least, most in (
            ("scratchpad_bytes", 2 * step, word << SCRATCHPAD_ADDRESS_BITS),
            ("cores", 1, MAX_CORES),
            ("max_steps", 1, 2**INDEX_BITS - 1),
            ("max_operands", 1, 2**INDEX_BITS - 1),
            ("max_transfers", 1, 2**INDEX_BITS - 1),
            ("max_operator_bytes", word, word * (2**WORDS_BITS - 1)),
            ("max_region_bytes", word, word << DRAM_BITS),
        ):
            value = getattr(self, name)
            check_range(name, value, least, most)
        if self.program is not None:
            self.check_program(self.program)

    def check_program(self, program: SchedulerProgram) -> None:
        """Check that a program fits; raise `InputError` for the first limit that it exceeds."""
        if program.word_bytes != self.word_bytes:
            legal = f"{self.word_bytes}, as of the hardware: plan for its board, with loomwork plan --board"
            raise InputError("word_bytes of the program", program.word_bytes, legal)
        for field, value in needs(program).items():
            most = getattr(self, field)
            if value > most:
                name = f"{field.removeprefix('max_')} of the program"
                raise InputError(name, value, f"at most {most}, the {field} of the hardware")

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
        """Bits of the words of an operand, an operator, a transfer or a ring."""
        return bits_for(self.max_operator_bytes // self.word_bytes)

    @property
    def dram_bits(self) -> int:
        """Bits of a word's address in the program's region of the memory."""
        return bits_for(self.max_region_bytes // self.word_bytes - 1)

    @property
    def step_bits(self) -> int:
        """Bits of a count of steps."""
        return bits_for(self.max_steps)

    @property
    def transfer_bits(self) -> int:
        """Bits of a count of transfers of one direction."""
        return bits_for(self.max_transfers)


def needs(program: SchedulerProgram) -> dict[str, int]:
    """Return the smallest value of each limit of `SchedulerConfig` at which a program fits."""
    words = [transfer.words for transfer in (*program.reads, *program.writes)]
    words += [max(core.words_in, core.words_out) for step in program.steps for core in step.cores]
    operands = [len(rows) for number, rows in table_rows(program).items() if number >= TableNumber.INPUTS]
    size = program.word_bytes
    return {
        "cores": program.cores,
        "scratchpad_bytes": program.scratchpad_words * size,
        "max_steps": len(program.steps),
        "max_operands": max(operands),
        "max_transfers": max(len(program.reads), len(program.writes), 1),
        "max_operator_bytes": max(words) * size,
        "max_region_bytes": program.memory_words * size,
    }


def frozen(
    program: SchedulerProgram, *, scratchpad_bytes: int = 0, memory: Literal["ultra", "block"] = "ultra"
) -> SchedulerConfig:
    """Return the smallest configuration for a program, with the program frozen in it and a scratchpad of at
    least ``scratchpad_bytes``.
    """
    least = needs(program)
    row = SchedulerConfig.banks * program.word_bytes
    rows = -(-max(scratchpad_bytes, least.pop("scratchpad_bytes")) // row)
    return SchedulerConfig(
        scratchpad_bytes=max(2, rows) * row,
        word_bytes=program.word_bytes,
        memory=memory,
        program=program,
        **least,
    )
