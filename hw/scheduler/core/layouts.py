"""Payload layouts of the scheduler's streams, as wide as the configuration needs."""

from amaranth.hdl import ShapeLike
from amaranth.lib import data

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.program.image import COMMAND_FIELDS, STEP_FIELDS
from hw.scheduler.program.program import Via

#: Bits of a byte address in memory.
MEMORY_ADDRESS_BITS = 64


def operand_layout(config: SchedulerConfig) -> data.StructLayout:
    """Return an operand: ``address`` of the first word, ``words``, ``ring`` (0: whole), ``tag`` (`Via`)."""
    return piece_layout(config, Via)


def piece_layout(config: SchedulerConfig, tag: ShapeLike) -> data.StructLayout:
    """Return a piece of the scratchpad, whole or a ring; its ``tag`` accompanies each word."""
    return data.StructLayout(
        {"address": config.address_bits, "words": config.size_bits, "ring": config.size_bits, "tag": tag}
    )


def place_layout(config: SchedulerConfig, tag: ShapeLike) -> data.StructLayout:
    """Return one word of a piece: its ``address``, whether it is the ``last``, ``ring`` and ``tag``."""
    return data.StructLayout(
        {"address": config.address_bits, "last": 1, "ring": config.size_bits, "tag": tag}
    )


def command_layout(config: SchedulerConfig) -> data.StructLayout:
    """Return a core's command for one step."""
    words = dict.fromkeys(("input_words", "output_words"), config.size_bits)
    return data.StructLayout(COMMAND_FIELDS | words)


def step_layout(config: SchedulerConfig) -> data.StructLayout:
    """Return a step."""
    waits = dict.fromkeys(("wait_writes", "wait_reads"), config.transfer_bits)
    return data.StructLayout(STEP_FIELDS | waits | {"active": config.cores})


def transfer_layout(config: SchedulerConfig) -> data.StructLayout:
    """Return a transfer; fields as of `hw.scheduler.program.program.TransferWord`, ``core`` one-hot."""
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
