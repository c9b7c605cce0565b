"""FPGA resources of a convolution kernel: an estimate that errs on the high side."""

from __future__ import annotations

from hw.board.resources import Resources
from hw.conv.config import ConvConfig
from hw.conv.movers.movers import side_port
from hw.lib.fifo import SHALLOW_DEPTH

# DSPs and RAMs are those of the generator.  LUT and FF are fitted to Yosys (`synth_xilinx -family xcup
# -flatten`) for the default of three boards (`tests/hw/conv/test_resources.py`).  The estimate is 7 to 14 %
# higher, as room for replication and for logic that placement leaves unpacked.

# A lane of the depthwise array, each tap of it, and a strip.
_LANE_LUT, _LANE_FF, _LANE_DSP = 700, 560, 2
_TAP_LUT, _TAP_FF, _TAP_DSP = 250, 300, 4
_STRIP_LUT, _STRIP_FF, _STRIP_DSP = 650, 520, 9
# An address generator.
_GENERATOR_LUT, _GENERATOR_FF, _GENERATOR_DSP = 700, 900, 6
# A product of the pointwise array, by the bits of its weight; the rest of a column.
_PRODUCT_LUT, _PRODUCT_FF = {4: 14, 8: 20}, {4: 37, 8: 50}
_COLUMN_LUT, _COLUMN_FF, _COLUMN_DSP = 520, 900, 2
# Control; a port at 256 bits; queues and shifters of a lane of a word, and of its second copy.
_CORE_LUT, _CORE_FF, _CORE_DSP = 6500, 10000, 2
_PORT_LUT, _PORT_FF = 7600, 7500
_WORD_LANE_LUT, _WORD_LANE_FF = 430, 500
_COPY_LANE_LUT, _COPY_LANE_FF = 180, 180
# Gathering samples outside the line buffer, a lane of it, and the products of a port's addresses.
_GATHER_LUT, _GATHER_FF, _GATHER_DSP = 2500, 3500, 3
_GATHER_LANE_LUT, _GATHER_LANE_FF = 110, 110
#: Bits of a word of a 36-Kibit block RAM at its widest; words of it then, and of an UltraRAM.
_RAM_BITS, _BLOCK_WORDS, _ULTRA_WORDS = 72, 512, 4096


def _rams(bits: int, words: int, most: int = _BLOCK_WORDS) -> int:
    return -(-bits // _RAM_BITS) * -(-words // most)


def estimate(config: ConvConfig, data_width: int) -> Resources:
    """Estimate a kernel."""
    lanes, taps, generators = config.lanes, config.taps, config.taps * config.generators
    columns, gather = config.outputs, bool(config.gather_words)
    products = config.inputs * columns
    ports = (side_port(config) + 1) * data_width / 256
    lane_dsp = _LANE_DSP + taps * (_TAP_DSP + config.mask) + config.strip * _STRIP_DSP
    # Columns that share multipliers make a cell.
    cells = -(-columns // (2 if config.weight_bits == 8 else 3))
    bram36, large = _block_rams(config, data_width, cells), _large_rams(config)
    ultra = config.memory == "ultra"
    return Resources(
        lut=int(
            _CORE_LUT
            + lanes * (_LANE_LUT + taps * _TAP_LUT + config.strip * _STRIP_LUT)
            + lanes * (_WORD_LANE_LUT + (taps - 1) * _COPY_LANE_LUT)
            + gather * (_GATHER_LUT + lanes * _GATHER_LANE_LUT)
            + generators * _GENERATOR_LUT
            + products * _PRODUCT_LUT[config.weight_bits]
            + columns * _COLUMN_LUT
            + ports * _PORT_LUT
        ),
        ff=int(
            _CORE_FF
            + lanes * (_LANE_FF + taps * _TAP_FF + config.strip * _STRIP_FF)
            + lanes * (_WORD_LANE_FF + (taps - 1) * _COPY_LANE_FF)
            + gather * (_GATHER_FF + lanes * _GATHER_LANE_FF)
            + generators * _GENERATOR_FF
            + products * _PRODUCT_FF[config.weight_bits]
            + columns * _COLUMN_FF
            + ports * _PORT_FF
        ),
        # The unit that computes offsets has one multiplier a lane, for two numbers.
        dsp=_CORE_DSP
        + lanes * (lane_dsp + bool(config.dot_words))
        + generators * _GENERATOR_DSP
        + gather * config.ports * _GATHER_DSP
        + cells * config.inputs
        + columns * _COLUMN_DSP,
        bram36=bram36 + (0 if ultra else large),
        uram=large if ultra else 0,
    )


def lane_cell_estimate(config: ConvConfig) -> Resources:
    """Estimate a cell of the depthwise array."""
    lanes, taps, strip = config.cell_lanes, config.taps, config.strip
    return Resources(
        lut=lanes * (_LANE_LUT + taps * _TAP_LUT + strip * _STRIP_LUT),
        ff=lanes * (_LANE_FF + taps * _TAP_FF + strip * _STRIP_FF),
        dsp=lanes * (_LANE_DSP + taps * (_TAP_DSP + config.mask) + strip * _STRIP_DSP),
        bram36=_rams(taps * config.weight_bits * lanes, 2 * config.tap_words),
        uram=0,
    )


def point_cell_estimate(config: ConvConfig, *, columns: int) -> Resources:
    """Estimate a cell of the pointwise array of ``columns``."""
    products = config.inputs * columns
    sums = columns * config.pointwise_bits
    return Resources(
        lut=products * _PRODUCT_LUT[config.weight_bits] + columns * _COLUMN_LUT,
        ff=products * _PRODUCT_FF[config.weight_bits] + columns * _COLUMN_FF,
        dsp=config.inputs + columns * _COLUMN_DSP,
        bram36=_rams(sums, config.block_pixels) if config.block_pixels > SHALLOW_DEPTH else 0,
        uram=0,
    )


def _large_rams(config: ConvConfig) -> int:
    """Count the RAMs of the line buffer, and of the buffers before and after the pointwise array."""
    depth = _ULTRA_WORDS if config.memory == "ultra" else _BLOCK_WORDS
    slices = config.taps * config.generators
    return (
        4 * slices * _rams(config.word_bits // config.generators, config.bank_words, depth)
        + 2 * _rams(config.word_bits, 2 * config.block_words, depth)
        + _rams(config.word_bits, 2 * config.bypass_words, depth)
    )


def _block_rams(config: ConvConfig, data_width: int, cells: int) -> int:
    """Count all other RAMs; a reader buffers 512 beats, and so does a writer, with strobes beside
    the data.
    """
    weights = config.taps * config.weight_bits * config.cell_lanes
    sums = -(-config.outputs // cells) * config.pointwise_bits
    return (
        config.lanes // config.cell_lanes * _rams(weights, 2 * config.tap_words)
        + (cells * _rams(sums, config.block_pixels) if config.block_pixels > SHALLOW_DEPTH else 0)
        + (_rams(16 * config.lanes, 2 * config.dot_words) if config.dot_words else 0)
        + config.generators * _rams(40 * config.taps, config.offset_entries)
        + (_rams(config.word_bits, config.bypass_words) if config.bypass_words > SHALLOW_DEPTH else 0)
        + 4 * config.taps * (_rams(config.word_bits, config.gather_words) if config.gather_words else 0)
        + (side_port(config) + 1) * _rams(data_width, _BLOCK_WORDS)
        + config.ports * _rams(data_width + data_width // 8 + 1, _BLOCK_WORDS)
    )
