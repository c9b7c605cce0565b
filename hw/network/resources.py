"""FPGA resources of a network kernel: an estimate that errs on the high side."""

from __future__ import annotations

from hw.board.resources import BLOCK_WORDS, ULTRA_WORDS, Gates, RamWords, Resources, rams
from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.matrix.config import RESULT_BITS
from hw.network.matrix.drain import RESULTS
from hw.network.matrix.feed_command import TABLE_ENTRIES, TileEntry
from hw.network.program.records import FIRST_RAM, TableNumber, row_layout, step_layout
from hw.network.tables.layouts import GROUP_WORDS, TABLE_BYTES, TABLE_GROUPS
from hw.network.vector.layouts import EXPONENTIAL_BITS, ChannelRow, ScaleRow, TapRow

# DSPs and UltraRAMs are those of the generator.  LUT and FF are counts of Yosys (`synth_xilinx -family xcup
# -flatten`) for parts of a board's default, and `_MARGIN` for replication and placement.
_MARGIN = 1.07

# A cell of the matrix array, with the registers before it; a column of the drain; a feed.
_CELL, _COLUMN, _FEED = Gates(1048, 2101, 68), Gates(223, 149, 2), Gates(1385, 2522)
# A port of weights, and each bit of it.
_WEIGHT_PORT, _WEIGHT_BIT = Gates(500, 700), Gates(2.9, 6.6)
# A lane of the vector unit, with its share of softmax and LayerNorm; the rest of the unit.
_LANE, _VECTOR = Gates(676, 680, 6.5), Gates(2300, 1800, 5)
# Two rows of attention with their results; the rest of its unit.
_ATTENTION_ROWS, _ATTENTION = Gates(12_530, 6_400, 206), Gates(5_850, 7_250)
# Of the scratchpad: a bank of a slice, a response, each bank that it chooses from; a slice, a port.
_BANK, _RESPONSE, _RESPONSE_BANK = Gates(180, 305), Gates(230, 180), Gates(33, 33)
_SLICE, _SLICE_BANK, _PORT = Gates(625, 890), Gates(11, 3), Gates(625, 605)
_READERS, _WRITERS = 6, 3
# Bits of a pixel's statistics, and of a row of the table of reciprocal roots.
_STATISTICS_BITS, _ROOT_BITS = 72, 36
# Attention's ports, and what they add to a slice and to a bank, there a choice of one more writer's data.
_ATTENTION_READERS, _ATTENTION_WRITERS = 2, 1
_ATTENTION_SLICE, _ATTENTION_BANK = Gates(290, 320), Gates(160, 5)
# Transfers, sequencer, loader and tables; each bit of a port of memory; each column of the array.
_KERNEL, _MEMORY_BIT, _ARRAY_COLUMN = Gates(7600, 12_700), Gates(22, 35), Gates(95, 260)
# Banks of a slice that work in a busy cycle: pixels are read, results written, and a transfer or the vector
# unit uses a third.
_WORKING_BANKS = 3
#: Rows of a block RAM, and bits of each.
_BLOCK_SHAPES = tuple((BLOCK_WORDS << n, 72 >> n) for n in range(4))


def estimate(config: NetworkConfig) -> Resources:
    """Estimate a kernel."""
    shape, matrix = config.shape, config.matrix
    port_bits = 8 * config.port_bytes
    slices = shape.granules
    attends = config.attention_rows > 0
    readers, writers = _READERS + attends * _ATTENTION_READERS, _WRITERS + attends * _ATTENTION_WRITERS
    pad = (
        slices * (_SLICE + config.banks * (_SLICE_BANK + _BANK))
        + attends * slices * (_ATTENTION_SLICE + config.banks * _ATTENTION_BANK)
        + slices * readers * (_RESPONSE + config.banks * _RESPONSE_BANK)
        + (readers + writers) * _PORT
    )
    gates = (
        pad
        + matrix.cells * _CELL
        + config.columns * (_COLUMN + _ARRAY_COLUMN)
        + 2 * _FEED
        + config.weight_ports * (_WEIGHT_PORT + port_bits * _WEIGHT_BIT)
        + config.lanes * _LANE
        + _VECTOR
        + _KERNEL
        + port_bits * _MEMORY_BIT
        + attends * _ATTENTION
        + attention_pairs(config) * _ATTENTION_ROWS
    )
    gates = Gates(_MARGIN * gates.lut, _MARGIN * gates.ff, gates.dsp)
    banks = slices * config.banks
    if config.memory == "ultra":
        uram = banks * rams(shape.granule_bits, shape.rows, ULTRA_WORDS)
        return gates.with_rams(bram36=_block_rams(config), uram=uram)
    return gates.with_rams(bram36=_block_rams(config) + banks * _blocks(shape.granule_bits, shape.rows))


def ram_words(config: NetworkConfig) -> RamWords:
    """Count the RAMs of a busy cycle: of the scratchpad those of the words of a few banks."""
    words = config.shape.granules * min(config.banks, _WORKING_BANKS) * rams(config.shape.granule_bits, 1)
    if config.memory == "ultra":
        return RamWords(bram36=_block_rams(config), uram=words)
    return RamWords(bram36=_block_rams(config) + words)


def cells_estimate(cells: int) -> Resources:
    """Estimate some cells of the matrix array."""
    gates = cells * _CELL
    return Gates(_MARGIN * gates.lut, _MARGIN * gates.ff, gates.dsp).with_rams(bram36=cells)


def attention_pairs(config: NetworkConfig) -> int:
    """Count the pairs of rows of the attention unit; the last one may be a single row."""
    return -(-config.attention_rows // 2)


def attention_rows_estimate() -> Resources:
    """Estimate two rows of the attention unit."""
    gates = _ATTENTION_ROWS
    return Gates(_MARGIN * gates.lut, _MARGIN * gates.ff, gates.dsp).with_rams()


def _step_bits(config: NetworkConfig, core: Core) -> int:
    """Return the bits of a step in the table of a core."""
    wait = step_layout(config)["wait"].shape
    return int(wait["needs"].width if core is Core.ATTENTION else wait.size)


def _blocks(bits: int, rows: int) -> int:
    """Count the block RAMs of a memory in the best of their shapes."""
    return min(-(-rows // depth) * -(-bits // width) for depth, width in _BLOCK_SHAPES)


def _block_rams(config: NetworkConfig) -> int:
    """Count all block RAMs but the scratchpad's; a reader buffers 512 beats, a writer with strobes."""
    port_bits = 8 * config.port_bytes
    rows = {number: row_layout(number, config).size for number in TableNumber if number < FIRST_RAM}
    if not config.attention_rows:
        del rows[TableNumber.ATTENTION]
    transfers = (TableNumber.READS, TableNumber.WRITES)
    memories = [
        *((rows[number], config.max_transfers) for number in transfers),
        *(
            (bits, config.max_steps)
            for number, bits in rows.items()
            if number not in (*transfers, TableNumber.HEADER, TableNumber.STEPS)
        ),
        # A table of steps for each core; attention has no word gate.
        *((_step_bits(config, core), config.max_steps) for core in Core),
        (rows[TableNumber.WEIGHTS], config.max_steps),  # for packets and for taps
        (TileEntry(config.shape).size, config.max_taps),
        *((TileEntry(config.shape).size, TABLE_ENTRIES) for _ in range(2)),
        *((32 * GROUP_WORDS, TABLE_GROUPS * config.tables) for _ in range(2)),
        (TapRow(config.vector).size, config.vector_taps),
        (ScaleRow().size, config.scales),
        *((ChannelRow().size, config.channels) for _ in range(config.lanes)),
        (_STATISTICS_BITS, config.pixels),
        (_ROOT_BITS, BLOCK_WORDS),
        (RESULT_BITS * config.columns, RESULTS),
        *((EXPONENTIAL_BITS, TABLE_BYTES * config.exponentials) for _ in range(config.vector.softmax_lanes)),
        *((port_bits, BLOCK_WORDS) for _ in range(config.weight_ports + 1)),
        (port_bits + port_bits // 8 + 1, BLOCK_WORDS),
    ]
    if config.attention_rows:
        memories += 2 * [(8 * config.attention.lanes, config.attention_tokens)]
    return config.matrix.cells + sum(_blocks(bits, count) for bits, count in memories)
