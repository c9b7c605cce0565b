"""What an attention kernel takes of a device: an estimate, on the safe side."""

from __future__ import annotations

from hw.attention.config import AttentionConfig
from hw.attention.movers import port_count
from hw.resources import Resources

# For a row of 64 lanes and two merge lanes these give 10,360 LUT, 13,340 FF and 132 DSP.  Yosys, by
# `synth_xilinx -family xcup -flatten`, counts 5,843 LUT and 352 more as LUTRAM, 9,544 FF and 132 DSP48E2: the
# rest is room for replication and for what placement leaves unpacked.
_ROW_LUT_FIXED = 2600
_ROW_FF_FIXED = 2200
_LANE_LUT = 90
_LANE_FF = 160
_MERGE_LANE_LUT = 1000
_MERGE_LANE_FF = 450
# Control, and registers of the broadcast.
_CORE_LUT = 4000
_CORE_FF = 4000
_CORE_FF_A_LANE = 200
# A port: two DMAs at the most, width converter, command queues.
_PORT_LUT = 5000
_PORT_FF = 7000
#: Bits of a word of a 36-Kibit block RAM at its widest, when it has 512 of them.
_BRAM_BITS = 72


def estimate(config: AttentionConfig, data_width: int) -> Resources:
    """Estimate a kernel.

    Parameters
    ----------
    config
        Shape of the engine.
    data_width
        Bits of a beat of the memory ports.
    """
    ports = port_count(config)
    row_lut = _ROW_LUT_FIXED + _LANE_LUT * config.head_dim + _MERGE_LANE_LUT * config.merge_lanes
    row_ff = _ROW_FF_FIXED + _LANE_FF * config.head_dim + _MERGE_LANE_FF * config.merge_lanes
    # A multiplier a lane in each array; the scale and the exponential's slope; one a lane of the normalizer.
    row_dsp = 2 * config.head_dim + 2 + config.merge_lanes
    width = data_width / 256
    # Every reader buffers 512 beats, and so does the one writer, with strobes beside the data.
    read_bram = -(-data_width // _BRAM_BITS)
    write_bram = -(-(data_width + data_width // 8 + 1) // _BRAM_BITS)
    return Resources(
        lut=_CORE_LUT + config.rows * row_lut + int(ports * _PORT_LUT * width),
        ff=_CORE_FF
        + _CORE_FF_A_LANE * config.head_dim
        + config.rows * row_ff
        + int(ports * _PORT_FF * width),
        dsp=config.rows * row_dsp,
        bram36=ports * read_bram + write_bram,
        uram=0,
    )
