"""FPGA resources of a convolution kernel: an estimate that errs on the high side."""

from hw.board.resources import BLOCK_WORDS, ULTRA_WORDS, Gates, RamWords, Resources, rams
from hw.conv.config import ConvConfig
from hw.conv.movers.movers import side_port
from hw.lib.fifo import SHALLOW_DEPTH

# DSPs and RAMs are those of the generator.  LUT and FF are fitted to Yosys (`synth_xilinx -family xcup
# -flatten`) for the default of three boards (`tests/hw/conv/test_resources.py`).  The estimate is 7 to 14 %
# higher, as room for replication and for logic that placement leaves unpacked.

# A lane of the depthwise array, each tap of it, a mask of each, and a strip.
_LANE, _TAP, _MASK, _STRIP = Gates(700, 560, 2), Gates(250, 300, 4), Gates(dsp=1), Gates(650, 520, 9)
# An address generator.
_GENERATOR = Gates(700, 900, 6)
# A product of the pointwise array, by the bits of its weight; the rest of a column.
_PRODUCT, _COLUMN = {4: Gates(14, 37), 8: Gates(20, 50)}, Gates(520, 900, 2)
# Control; a port at 256 bits; queues and shifters of a lane of a word, and of its second copy.
_CORE, _PORT = Gates(6500, 10000, 2), Gates(7600, 7500)
_WORD_LANE, _COPY_LANE = Gates(430, 500), Gates(180, 180)
# Gathering samples outside the line buffer, a lane of it, and the products of a port's addresses.
_GATHER, _GATHER_LANE, _GATHER_PORT = Gates(2500, 3500), Gates(110, 110), Gates(dsp=3)
# The multiplier of a lane of the unit that computes offsets, for two numbers.
_DOT_LANE = Gates(dsp=1)


def estimate(config: ConvConfig, data_width: int) -> Resources:
    """Estimate a kernel."""
    lanes, columns = config.lanes, config.outputs
    lane = _lane(config) + _WORD_LANE + (config.taps - 1) * _COPY_LANE + bool(config.dot_words) * _DOT_LANE
    gather = _GATHER + lanes * _GATHER_LANE + config.ports * _GATHER_PORT
    # Columns that share multipliers make a cell.
    cells = -(-columns // (2 if config.weight_bits == 8 else 3))
    gates = (
        _CORE
        + lanes * lane
        + bool(config.gather_words) * gather
        + config.taps * config.generators * _GENERATOR
        + _columns(config, columns)
        + Gates(dsp=cells * config.inputs)
        + (side_port(config) + 1) * data_width / 256 * _PORT
    )
    bram36, large = _block_rams(config, data_width, cells), _large_rams(config)
    if config.memory == "ultra":
        return gates.with_rams(bram36=bram36, uram=large)
    return gates.with_rams(bram36=bram36 + large)


def _lane(config: ConvConfig) -> Gates:
    """Return a lane of the depthwise array."""
    return _LANE + config.taps * (_TAP + config.mask * _MASK) + config.strip * _STRIP


def _columns(config: ConvConfig, columns: int) -> Gates:
    """Return columns of the pointwise array without their multipliers."""
    return columns * (config.inputs * _PRODUCT[config.weight_bits] + _COLUMN)


def lane_cell_estimate(config: ConvConfig) -> Resources:
    """Estimate a cell of the depthwise array."""
    weights = config.taps * config.weight_bits * config.cell_lanes
    return (config.cell_lanes * _lane(config)).with_rams(bram36=rams(weights, 2 * config.tap_words))


def point_cell_estimate(config: ConvConfig, *, columns: int) -> Resources:
    """Estimate a cell of the pointwise array of ``columns``."""
    sums = rams(columns * config.pointwise_bits, config.block_pixels)
    gates = _columns(config, columns) + Gates(dsp=config.inputs)
    return gates.with_rams(bram36=sums if config.block_pixels > SHALLOW_DEPTH else 0)


def ram_words(config: ConvConfig, data_width: int) -> RamWords:
    """Count the RAMs of a busy cycle: of each bank of the large buffers those of one word."""
    need = estimate(config, data_width)
    asleep = _large_rams(config) - _large_rams(config, words=1)
    if config.memory == "ultra":
        return RamWords(bram36=need.bram36, uram=need.uram - asleep)
    return RamWords(bram36=need.bram36 - asleep)


def _large_rams(config: ConvConfig, words: int | None = None) -> int:
    """Count the RAMs of the line buffer, and of the buffers before and after the pointwise array.

    ``words``: those with this number of words of each bank, instead of all.
    """
    depth = ULTRA_WORDS if config.memory == "ultra" else BLOCK_WORDS
    slices = config.taps * config.generators

    def bank(bits: int, all_words: int) -> int:
        return rams(bits, all_words if words is None else min(words, all_words), depth)

    return (
        4 * slices * bank(config.word_bits // config.generators, config.bank_words)
        + 2 * bank(config.word_bits, 2 * config.block_words)
        + bank(config.word_bits, 2 * config.bypass_words)
    )


def _block_rams(config: ConvConfig, data_width: int, cells: int) -> int:
    """Count all other RAMs; a reader buffers 512 beats, and so does a writer, with strobes beside
    the data.
    """
    weights = config.taps * config.weight_bits * config.cell_lanes
    sums = -(-config.outputs // cells) * config.pointwise_bits
    return (
        config.lanes // config.cell_lanes * rams(weights, 2 * config.tap_words)
        + (cells * rams(sums, config.block_pixels) if config.block_pixels > SHALLOW_DEPTH else 0)
        + (rams(16 * config.lanes, 2 * config.dot_words) if config.dot_words else 0)
        + config.generators * rams(40 * config.taps, config.offset_entries)
        + (rams(config.word_bits, config.bypass_words) if config.bypass_words > SHALLOW_DEPTH else 0)
        + 4 * config.taps * (rams(config.word_bits, config.gather_words) if config.gather_words else 0)
        + (side_port(config) + 1) * rams(data_width, BLOCK_WORDS)
        + config.ports * rams(data_width + data_width // 8 + 1, BLOCK_WORDS)
    )
