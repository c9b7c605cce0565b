"""FPGA resources of a convolution kernel: an estimate that errs on the high side."""

from __future__ import annotations

from hw.board.resources import Resources
from hw.conv.config import ConvConfig
from hw.conv.movers.movers import side_port

# A lane of the depthwise array, each tap of it, and a strip; an address generator.
_LANE_LUT, _LANE_FF, _LANE_DSP = 500, 700, 3
_TAP_LUT, _TAP_FF, _TAP_DSP = 120, 300, 4
_STRIP_LUT, _STRIP_FF, _STRIP_DSP = 350, 500, 9
_GENERATOR_LUT, _GENERATOR_FF, _GENERATOR_DSP = 700, 900, 6
# A product of the pointwise array, and what a column has besides.
_PRODUCT_LUT, _PRODUCT_FF = 14, 26
_COLUMN_LUT, _COLUMN_FF, _COLUMN_DSP = 450, 600, 3
# Control, a port at 256 bits, and what every lane of a word costs in queues and shifters.
_CORE_LUT, _CORE_FF, _CORE_DSP = 20000, 25000, 20
_PORT_LUT, _PORT_FF = 7000, 8000
_WORD_LANE_LUT, _WORD_LANE_FF = 250, 250
#: Bits of a word of a 36-Kibit block RAM at its widest, when it has 512 of them; of an UltraRAM's 4,096.
_RAM_BITS, _BLOCK_WORDS, _ULTRA_WORDS = 72, 512, 4096


def _rams(bits: int, words: int, most: int = _BLOCK_WORDS) -> int:
    return -(-bits // _RAM_BITS) * -(-words // most)


def estimate(config: ConvConfig, data_width: int) -> Resources:
    """Estimate a kernel.

    Parameters
    ----------
    config
        Shape of the engine.
    data_width
        Bits of a beat of the memory ports.
    """
    lanes, taps, width = config.lanes, config.taps, data_width / 256
    ports = side_port(config) + 1
    generators = taps * config.generators
    products = config.inputs * config.outputs
    ultra = config.memory == "ultra"
    per_dsp = 2 if config.weight_bits == 8 else 3
    depth = _ULTRA_WORDS if ultra else _BLOCK_WORDS
    banks = 4 * generators * _rams(config.word_bits // config.generators, config.bank_words, depth)
    cells = lanes // config.cell_lanes
    gathered = 4 * taps * _rams(config.word_bits, config.gather_words)
    sums = config.outputs * config.pointwise_bits
    bram36 = (
        4 * _rams(config.word_bits, config.block_words)
        + 2 * _rams(config.word_bits, config.bypass_words)
        + cells * _rams(taps * config.weight_bits * config.cell_lanes, 2 * config.tap_words)
        + _rams(sums, config.block_pixels)
        + config.generators * _rams(40 * taps, config.offset_entries)
        + 2 * ports * _rams(data_width, _BLOCK_WORDS)
        + gathered
    )
    return Resources(
        lut=int(
            _CORE_LUT
            + lanes * (_LANE_LUT + taps * _TAP_LUT + config.strip * _STRIP_LUT + _WORD_LANE_LUT)
            + generators * _GENERATOR_LUT
            + products * _PRODUCT_LUT
            + config.outputs * _COLUMN_LUT
            + ports * width * _PORT_LUT
        ),
        ff=int(
            _CORE_FF
            + lanes * (_LANE_FF + taps * _TAP_FF + config.strip * _STRIP_FF + _WORD_LANE_FF)
            + generators * _GENERATOR_FF
            + products * _PRODUCT_FF
            + config.outputs * _COLUMN_FF
            + ports * width * _PORT_FF
        ),
        dsp=_CORE_DSP
        + lanes * (_LANE_DSP + taps * (_TAP_DSP + config.mask) + config.strip * _STRIP_DSP)
        + generators * _GENERATOR_DSP
        + -(-products // per_dsp)
        + config.outputs * _COLUMN_DSP,
        bram36=bram36 + (0 if ultra else banks),
        uram=banks if ultra else 0,
    )
