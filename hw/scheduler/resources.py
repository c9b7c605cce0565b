"""FPGA resources of a scheduler kernel: an estimate on the high side."""

from __future__ import annotations

from hw.board.resources import Resources
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import command_layout, operand_layout, step_layout, transfer_layout
from hw.scheduler.core.scratchpad import TILE_ROWS

# For two cores, eight banks and 256 bits the estimate is 27,188 LUT and 23,753 FF.  Yosys
# (`synth_xilinx -family xcup`) counts some 25,000 LUT and 17,000 FF.  It maps the banks' multiplexers to four
# LUTs a bit where one would do.  The rest is margin for replication and placement.

# Both DMAs, the two engines and the sequencer, at 256 bits.
_TRANSFER_LUT = 9500
_TRANSFER_FF = 12000
# A core (traffic engine and port), at 256 bits.
_CORE_LUT = 2700
_CORE_FF = 2600
# A bank, for each port and bit of a word: its share of both multiplexers.
_BANK_LUT_A_PORT_BIT = 2.0
_BANK_FF_A_BIT = 3.2
#: Widest word of a RAM in bits, and its depth at that width.
_BRAM_BITS, _BRAM_ROWS = 72, 512
_URAM_BITS = 72


def estimate(config: SchedulerConfig) -> Resources:
    """Estimate a kernel."""
    width = config.word_bits / 256
    ports = config.cores + 1
    bits = config.banks * config.word_bits
    rows = min(config.bank_rows, TILE_ROWS)
    tiles = config.banks * -(-config.bank_rows // rows)
    rams = {"uram": 0, "bram36": 0}
    if config.memory == "ultra":
        rams["uram"] = tiles * -(-config.word_bits // _URAM_BITS)
    else:
        rams["bram36"] = tiles * -(-rows // _BRAM_ROWS) * -(-config.word_bits // _BRAM_BITS)
    # The DMAs buffer 512 beats each, the writer's with strobes.
    buffers = -(-config.word_bits // _BRAM_BITS) + -(-(config.word_bits * 9 // 8 + 1) // _BRAM_BITS)
    return Resources(
        lut=int(width * (_TRANSFER_LUT + config.cores * _CORE_LUT) + bits * ports * _BANK_LUT_A_PORT_BIT),
        ff=int(width * (_TRANSFER_FF + config.cores * _CORE_FF) + bits * _BANK_FF_A_BIT),
        dsp=0,
        bram36=rams["bram36"] + buffers + _table_brams(config),
        uram=rams["uram"],
    )


def _table_brams(config: SchedulerConfig) -> int:
    """Count the block RAMs of the program's tables."""
    tables = [
        (1, step_layout(config).size, config.max_steps),
        (2, transfer_layout(config).size, config.max_transfers),
        (config.cores, command_layout(config).size, config.max_steps),
        (2 * config.cores, operand_layout(config).size, config.max_operands),
    ]
    return sum(count * -(-bits // _BRAM_BITS) * -(-rows // _BRAM_ROWS) for count, bits, rows in tables)
