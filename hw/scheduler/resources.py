"""FPGA resources of a scheduler kernel: an estimate on the high side."""

from hw.board.resources import Gates, Resources
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import command_layout, operand_layout, step_layout, transfer_layout
from hw.scheduler.core.scratchpad import TILE_ROWS

# For two cores, eight banks and 256 bits the estimate is 27,188 LUT and 23,753 FF.  Yosys
# (`synth_xilinx -family xcup`) counts some 25,000 LUT and 17,000 FF.  It maps the banks' multiplexers to four
# LUTs a bit where one would do.  The rest is margin for replication and placement.

# Both DMAs, the two engines and the sequencer, at 256 bits.
_TRANSFER = Gates(9500, 12000)
# A core (traffic engine and port), at 256 bits.
_CORE = Gates(2700, 2600)
# A bit of a bank's word: for each port its share of both multiplexers, and registers.
_BANK_PORT_BIT, _BANK_BIT = Gates(lut=2.0), Gates(ff=3.2)
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
    # The DMAs buffer 512 beats each, the writer's with strobes.
    buffers = -(-config.word_bits // _BRAM_BITS) + -(-(config.word_bits * 9 // 8 + 1) // _BRAM_BITS)
    gates = width * (_TRANSFER + config.cores * _CORE) + bits * (ports * _BANK_PORT_BIT + _BANK_BIT)
    bram36 = buffers + _table_brams(config)
    if config.memory == "ultra":
        return gates.with_rams(bram36=bram36, uram=tiles * -(-config.word_bits // _URAM_BITS))
    banks = tiles * -(-rows // _BRAM_ROWS) * -(-config.word_bits // _BRAM_BITS)
    return gates.with_rams(bram36=bram36 + banks)


def _table_brams(config: SchedulerConfig) -> int:
    """Count the block RAMs of the program's tables."""
    tables = [
        (1, step_layout(config).size, config.max_steps),
        (2, transfer_layout(config).size, config.max_transfers),
        (config.cores, command_layout(config).size, config.max_steps),
        (2 * config.cores, operand_layout(config).size, config.max_operands),
    ]
    return sum(count * -(-bits // _BRAM_BITS) * -(-rows // _BRAM_ROWS) for count, bits, rows in tables)
