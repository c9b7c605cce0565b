"""The program image: a program as bytes in memory, loaded at launch; ``docs/scheduler.md`` specifies it.

An image is a sequence of records.  A record is 16 bytes; where the memory port's words are wider, each
record begins a word and the rest of the word is 0.  Fields follow each other from bit 0 of the record,
little-endian.  The first four bits are the number of the table whose next row the record is (`TableNumber`).
Record 0 is the header.
"""

import enum
from collections.abc import Iterable, Mapping

from hw.scheduler.program.program import (
    COUNT_BITS,
    CYCLES_BITS,
    MAX_CORES,
    OPERATOR_BITS,
    CoreWord,
    OperandWord,
    SchedulerProgram,
    TransferWord,
)

VERSION = 1
#: ``"LWPI"``, little-endian.
MAGIC = 0x4950574C
RECORD_BITS = 128
TABLE_BITS = 4
#: Field widths, which limit every configuration.  ``WORDS_BITS``: words of an operand, operator or transfer;
#: ``DRAM_BITS``: a word address in memory; ``INDEX_BITS``: a step's number or a count of transfers.
SCRATCHPAD_ADDRESS_BITS = WORDS_BITS = 24
DRAM_BITS = 32
INDEX_BITS = 16

Row = Mapping[str, int]


class TableNumber(enum.IntEnum):
    """Tables of the sequencer; the last three exist once a core, core ``c``'s at the number plus ``c``."""

    HEADER = 0
    STEPS = 1
    READS = 2
    WRITES = 3
    COMMANDS = 4
    INPUTS = 8
    OUTPUTS = 12


# Fields of a record after its table number, and their bits.
STEP_FIELDS = {
    "wait_writes": INDEX_BITS,  #: Writes that must complete before the slot begins.
    "wait_reads": INDEX_BITS,  #: Reads that must complete before the cores start.
    "active": MAX_CORES,  #: One bit a core of the step.
    "last": 1,  #: The program ends with this step.
}
TRANSFER_FIELDS = {
    "dram": DRAM_BITS,
    "address": SCRATCHPAD_ADDRESS_BITS,
    "words": WORDS_BITS,
    "ring": WORDS_BITS,
    "core": MAX_CORES,
    "start_step": INDEX_BITS,
}
COMMAND_FIELDS = {
    "operator": OPERATOR_BITS,  #: Number of the operator.
    #: ``inputs``, ``outputs``: operands of the step on the core's two operand streams.
    "inputs": COUNT_BITS,
    "outputs": COUNT_BITS,
    #: ``input_words``, ``output_words``: words of all of them.
    "input_words": WORDS_BITS,
    "output_words": WORDS_BITS,
    "compute_cycles": CYCLES_BITS,  #: Least cycles from the command to done.
}
OPERAND_FIELDS = {"address": SCRATCHPAD_ADDRESS_BITS, "words": WORDS_BITS, "ring": WORDS_BITS, "tag": 2}
_HEADER_FIELDS = {"version": 12, "magic": 32, "word_bytes": 16, "records": 32, "scratchpad_words": 32}
_FIELDS = {
    TableNumber.HEADER: _HEADER_FIELDS,
    TableNumber.STEPS: STEP_FIELDS,
    TableNumber.READS: TRANSFER_FIELDS,
    TableNumber.WRITES: TRANSFER_FIELDS,
    TableNumber.COMMANDS: COMMAND_FIELDS,
    TableNumber.INPUTS: OPERAND_FIELDS,
    TableNumber.OUTPUTS: OPERAND_FIELDS,
}


def fields(number: int) -> dict[str, int]:
    """Return the fields of a table's records, and their bits, for a table number."""
    return _FIELDS[TableNumber(number if number < TableNumber.COMMANDS else number - number % MAX_CORES)]


def table_rows(program: SchedulerProgram) -> dict[int, list[Row]]:
    """Return the rows of each table, by table number, in order of execution."""
    tables: dict[int, list[Row]] = {
        TableNumber.STEPS: [
            {
                "wait_writes": step.wait_writes,
                "wait_reads": step.wait_reads,
                "active": 2 ** len(step.cores) - 1,
                "last": int(number == len(program.steps)),
            }
            for number, step in enumerate(program.steps, 1)
        ],
        TableNumber.READS: _transfers(program.reads),
        TableNumber.WRITES: _transfers(program.writes),
    }
    for core in range(program.cores):
        words = [step.cores[core] for step in program.steps if core < len(step.cores)]
        tables[TableNumber.COMMANDS + core] = [_command(word) for word in words]
        tables[TableNumber.INPUTS + core] = [_operand(each) for word in words for each in word.inputs]
        tables[TableNumber.OUTPUTS + core] = [_operand(each) for word in words for each in word.outputs]
    return tables


def record_bytes(word_bytes: int) -> int:
    """Return the distance between records."""
    return max(RECORD_BITS // 8, word_bytes)


def encode(program: SchedulerProgram) -> bytes:
    """Return the image of a program that fits `hw.scheduler.config.SchedulerConfig.check_program`."""
    tables = table_rows(program)
    header = {
        "version": VERSION,
        "magic": MAGIC,
        "word_bytes": program.word_bytes,
        "records": 1 + sum(len(rows) for rows in tables.values()),
        "scratchpad_words": program.scratchpad_words,
    }
    size = record_bytes(program.word_bytes)
    return b"".join(
        _record(number, row).to_bytes(size, "little")
        for number, rows in ({TableNumber.HEADER: [header]} | tables).items()
        for row in rows
    )


def _record(number: int, row: Row) -> int:
    record, low = number, TABLE_BITS
    for name, bits in fields(number).items():
        if row[name] >> bits:
            raise OverflowError(f"{name} {row[name]} has more than {bits} bits")
        record |= row[name] << low
        low += bits
    return record


def _transfers(transfers: Iterable[TransferWord]) -> list[Row]:
    return [
        {
            "dram": transfer.dram_address,
            "address": transfer.address,
            "words": transfer.words,
            "ring": transfer.ring,
            "core": 1 << transfer.core,
            "start_step": transfer.start_step,
        }
        for transfer in transfers
    ]


def _command(core: CoreWord) -> Row:
    return {
        "operator": core.operator,
        "inputs": len(core.inputs),
        "outputs": len(core.outputs),
        "input_words": core.words_in,
        "output_words": core.words_out,
        "compute_cycles": core.compute_cycles,
    }


def _operand(operand: OperandWord) -> Row:
    return {"address": operand.address, "words": operand.words, "ring": operand.ring, "tag": operand.via}
