"""What an attention kernel takes of a device: an estimate, on the safe side."""

from __future__ import annotations

from hw.attention.config import AttentionConfig
from hw.attention.movers import port_count
from hw.resources import Resources

_ROW_LUT_FIXED = 2600
_ROW_FF_FIXED = 2200
_LANE_LUT = 90
_LANE_FF = 160
_MERGE_LANE_LUT = 1000
_MERGE_LANE_FF = 450
_CORE_LUT = 4000
_CORE_FF = 4000
_CORE_FF_A_LANE = 200
_PORT_LUT = 5000
_PORT_FF = 7000
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
    row_lut = _ROW_LUT_FIXED + _LANE_LUT * config.lanes + _MERGE_LANE_LUT * config.merge_lanes
    row_ff = _ROW_FF_FIXED + _LANE_FF * config.lanes + _MERGE_LANE_FF * config.merge_lanes
    row_dsp = 3 * config.lanes // 2 + 2 + config.merge_lanes
    width = data_width / 256
    read_bram = -(-data_width // _BRAM_BITS)
    write_bram = -(-(data_width + data_width // 8 + 1) // _BRAM_BITS)
    return Resources(
        lut=_CORE_LUT + config.streams * config.rows * row_lut + int(ports * _PORT_LUT * width),
        ff=_CORE_FF + _CORE_FF_A_LANE * config.lanes + config.rows * row_ff + int(ports * _PORT_FF * width),
        dsp=config.streams * config.rows * row_dsp,
        bram36=ports * read_bram + write_bram,
        uram=0,
    )
