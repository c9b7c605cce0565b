"""What goes over the scheduler's streams: payload layouts, as wide as the configuration needs."""

from __future__ import annotations

import enum

from amaranth.hdl import ShapeLike
from amaranth.lib import data

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.plan.plan import Mode
from hw.scheduler.program.program import COUNT_BITS, CYCLES_BITS, OPERATOR_BITS, Via


class Path(enum.IntEnum):
    """`hw.scheduler.program.program.Via` in gates."""

    WHOLE = 0
    MEMORY = 1
    FIFO = 2


#: Codes of the plain data's enumerations.
PATH_OF = {Via.WHOLE: Path.WHOLE, Via.MEMORY: Path.MEMORY, Via.FIFO: Path.FIFO}
MODE_CODE = {Mode.SEQUENTIAL: 0, Mode.PIPELINED: 1}


def operand_layout(config: SchedulerConfig) -> data.StructLayout:
    """Give an operand: first word ``address``, ``words``, ``ring`` (0: whole), ``tag`` (`Path`)."""
    return piece_layout(config, Path)


def piece_layout(config: SchedulerConfig, tag: ShapeLike) -> data.StructLayout:
    """Give a piece of the scratchpad to walk over, with a ``tag`` that goes with each of its words."""
    return data.StructLayout(
        {"address": config.address_bits, "words": config.size_bits, "ring": config.size_bits, "tag": tag}
    )


def place_layout(config: SchedulerConfig, tag: ShapeLike) -> data.StructLayout:
    """Give one word of a piece: its ``address``, whether it is the ``last``, ``ring`` and ``tag``."""
    return data.StructLayout(
        {"address": config.address_bits, "last": 1, "ring": config.size_bits, "tag": tag}
    )


def command_layout(config: SchedulerConfig) -> data.StructLayout:
    """Give what a core is told at the start of a step.

    Members
    -------
    operator
        Number of the operator.
    mode
        0 sequential, 1 pipelined.
    inputs, outputs
        Operands that follow on the core's two operand streams.
    input_words, output_words
        Words of all of them.
    compute_cycles
        Least cycles from the command to done.
    """
    return data.StructLayout(
        {
            "operator": OPERATOR_BITS,
            "mode": 1,
            "inputs": COUNT_BITS,
            "outputs": COUNT_BITS,
            "input_words": config.total_bits,
            "output_words": config.total_bits,
            "compute_cycles": CYCLES_BITS,
        }
    )


def step_layout(config: SchedulerConfig) -> data.StructLayout:
    """Give a row of the step ROM.

    Members
    -------
    wait_writes, wait_reads
        Transfers that are complete before the slot begins, and before the cores start.
    active
        One bit a core that takes part.
    commands
        One `command_layout` a core.
    last
        The program ends with this step.
    """
    return data.StructLayout(
        {
            "wait_writes": config.transfer_bits,
            "wait_reads": config.transfer_bits,
            "active": config.cores,
            "commands": data.ArrayLayout(command_layout(config), config.cores),
            "last": 1,
        }
    )


def transfer_layout(config: SchedulerConfig) -> data.StructLayout:
    """Give a row of a DMA ROM; fields as of `hw.scheduler.program.program.TransferWord`, ``core`` one-hot."""
    return data.StructLayout(
        {
            "dram": config.dram_bits,
            "address": config.address_bits,
            "words": config.size_bits,
            "ring": config.size_bits,
            "core": config.cores,
            "start_step": config.step_bits,
        }
    )
