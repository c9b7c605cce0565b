"""FPGA resources of a scheduler kernel: an estimate on the high side."""

from hw.board.resources import BLOCK_WORDS, ULTRA_WORDS, Gates, RamWords, Resources, rams
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


def estimate(config: SchedulerConfig) -> Resources:
    """Estimate a kernel."""
    width = config.word_bits / 256
    ports = config.cores + 1
    bits = config.banks * config.word_bits
    rows = min(config.bank_rows, TILE_ROWS)
    tiles = config.banks * -(-config.bank_rows // rows)
    # The DMAs buffer 512 beats each, the writer's with strobes.
    buffers = rams(config.word_bits, BLOCK_WORDS) + rams(config.word_bits * 9 // 8 + 1, BLOCK_WORDS)
    gates = width * (_TRANSFER + config.cores * _CORE) + bits * (ports * _BANK_PORT_BIT + _BANK_BIT)
    bram36 = buffers + _table_brams(config)
    if config.memory == "ultra":
        return gates.with_rams(bram36=bram36, uram=tiles * rams(config.word_bits, rows, ULTRA_WORDS))
    return gates.with_rams(bram36=bram36 + tiles * rams(config.word_bits, rows))


def ram_words(config: SchedulerConfig) -> RamWords:
    """Count the RAMs of a busy cycle: each core and the transfers use a bank of the scratchpad."""
    need = estimate(config)
    working = min(config.banks, config.cores + 1) * rams(config.word_bits, 1)
    if config.memory == "ultra":
        return RamWords(bram36=need.bram36, uram=working)
    rows = min(config.bank_rows, TILE_ROWS)
    pad = config.banks * -(-config.bank_rows // rows) * rams(config.word_bits, rows)
    return RamWords(bram36=need.bram36 - pad + working)


def _table_brams(config: SchedulerConfig) -> int:
    """Count the block RAMs of the program's tables."""
    tables = [
        (1, step_layout(config).size, config.max_steps),
        (2, transfer_layout(config).size, config.max_transfers),
        (config.cores, command_layout(config).size, config.max_steps),
        (2 * config.cores, operand_layout(config).size, config.max_operands),
    ]
    return sum(count * rams(bits, rows) for count, bits, rows in tables)
