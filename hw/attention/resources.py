"""FPGA resources of an attention kernel: an estimate that errs on the high side."""

from __future__ import annotations

from hw.attention.config import AttentionConfig
from hw.attention.movers.cache import ULTRA_DEPTH
from hw.board.resources import Resources

# Counts of Yosys, by `synth_xilinx -family xcup -flatten`, with 64 lanes in two folds, 20-bit probabilities
# and four merge lanes.  Two rows of a stream: 5,508 LUT and 4,213 more as LUTRAM, 5,036 FF and 196 DSP48E2.
# Their results of two streams at four ports: 7,989 + 1,280 LUT, 4,933 FF and 8 DSP48E2.  All else of a kernel
# with two streams, fifteen ports of 256 bits and caches of 16,384 keys: 72,897 + 9,284 LUT, 79,597 FF, 14
# DSP48E2, 63 block RAMs and 60 UltraRAMs.  With 16 rows that is 311,869 LUT and 199,637 FF; the estimate is
# 316,319 and 218,791.

# A row of a stream; a lane of it, apart from the sums; a bit of a lane's sum, and of a sum outside its slice.
_ROW_LUT, _ROW_FF = 800, 1050
_LANE_LUT, _LANE_FF = 14, 11
_SUM_LUT, _SUM_FF = 0.92, 0.05
_OUTSIDE_LUT, _OUTSIDE_FF = 1.0, 1.0
# A merge lane of a row of a stream; a row's results, their lanes, and a bit of their ports.  With several
# streams, the joining of one of them, and of a lane of it.
_MERGE_LANE_LUT, _MERGE_LANE_FF = 300, 250
_RESULT_LUT, _RESULT_FF = 500, 200
_RESULT_LANE_LUT, _RESULT_LANE_FF = 310, 150
_RESULT_BIT_LUT, _RESULT_BIT_FF = 0.6, 1.0
_JOIN_LUT, _JOIN_FF = 230, 100
_JOIN_LANE_LUT, _JOIN_LANE_FF = 230, 75
# Options, in a row of a stream.
_CAP_LUT, _CAP_FF = 350, 350
_ALIBI_LUT, _ALIBI_FF = 200, 250
# Pages, in a stream: the lookup, its entries, and a share of the common parts.
_PAGES_LUT, _PAGES_FF = 900, 900
# Control of the core, and the registers of parts on their path to the rows of a stream.
_CORE_LUT, _CORE_FF, _CORE_DSP = 12000, 8000, 6
_STREAM_FF_A_LANE, _STREAM_DSP, _STREAM_BRAM = 100, 4, 2
# A port at 256 bits: DMA, cutter, queues; and a length.
_PORT_LUT, _PORT_FF, _PORT_DSP = 5000, 4300, 1
# A kernel that decodes: a port of queries, keys or values, without a cutter; a bit that selects a stream's
# part or a cell's own; the combination of all cells.
_PART_PORT_LUT, _PART_PORT_FF = 400, 600
_CHOICE_LUT, _CHOICE_FF = 1, 2
_CELLS_LUT, _CELLS_FF = 5000, 5000
#: Bits of a word of a 36-Kibit block RAM in its widest shape, of 512 words; of an UltraRAM, of 4,096 words.
_RAM_BITS, _BLOCK_WORDS, _ULTRA_WORDS = 72, 512, 4096


def estimate(config: AttentionConfig, data_width: int) -> Resources:
    """Estimate a kernel."""
    lut, ff, dsp = _row(config)
    result_lut, result_ff, result_dsp = _result(config, config.result_ports * config.result_slice(data_width))
    rows, streams = config.rows, config.streams
    port_lut, port_ff = _ports(config, data_width / 256)
    caches = 2 * streams * -(-config.part_bits // _RAM_BITS)
    ultra = config.cached_keys >= ULTRA_DEPTH
    words = _ULTRA_WORDS if ultra else _BLOCK_WORDS
    cache_rams = caches * -(-config.cached_keys // words)
    # Every reader buffers 512 beats, and every writer too, with strobes beside the data.
    writers = config.result_ports
    readers = 1 + config.query_port_count + 2 * streams * config.ports
    buffers = readers * -(-data_width // _RAM_BITS) + writers * -(
        -(data_width + data_width // 8 + 1) // _RAM_BITS
    )
    # Two rows share a table of the cap.
    tables = streams * -(-rows // 2) if config.logit_cap else 0
    # A pair of rows shares the multipliers of its scores.
    scores = -(-rows // 2) * config.lanes
    return Resources(
        lut=int(
            _CORE_LUT + rows * (streams * lut + result_lut) + port_lut + streams * _PAGES_LUT * config.paged
        ),
        ff=int(
            _CORE_FF
            + rows * (streams * ff + result_ff)
            + streams * _STREAM_FF_A_LANE * config.lanes
            + port_ff
            + streams * _PAGES_FF * config.paged
        ),
        dsp=_CORE_DSP
        + 2 * streams * config.ports * _PORT_DSP
        + streams * (_STREAM_DSP + scores + rows * dsp)
        + rows * result_dsp,
        bram36=buffers + streams * _STREAM_BRAM + tables + (0 if ultra else cache_rams),
        uram=cache_rams if ultra else 0,
    )


def cell_estimate(config: AttentionConfig, data_width: int, *, rows: int) -> Resources:
    """Estimate one or two rows of all streams with their results, which share a die."""
    lut, ff, dsp = _row(config)
    result_lut, result_ff, result_dsp = _result(config, config.result_ports * config.result_slice(data_width))
    return Resources(
        lut=int(rows * (config.streams * lut + result_lut)),
        ff=int(rows * (config.streams * ff + result_ff)),
        dsp=config.streams * (config.lanes + rows * dsp) + rows * result_dsp,
        bram36=config.streams * config.logit_cap,
        uram=0,
    )


def _ports(config: AttentionConfig, width: float) -> tuple[float, float]:
    """Return LUT and FF of the ports, each ``width`` times 256 bits, and of the paths to cells."""
    others = (1 + config.result_ports) * width
    part_ports = config.query_port_count + 2 * config.streams * config.ports
    if not config.decodes:
        others += part_ports * width
        return others * _PORT_LUT, others * _PORT_FF
    choices = part_ports * config.part_bits
    return (
        others * _PORT_LUT + part_ports * _PART_PORT_LUT + choices * _CHOICE_LUT + _CELLS_LUT,
        others * _PORT_FF + part_ports * _PART_PORT_FF + choices * _CHOICE_FF + _CELLS_FF,
    )


def _row(config: AttentionConfig) -> tuple[float, float, int]:
    """Return LUT, FF and DSP of a row of a stream, without the multipliers of its scores."""
    sums = config.partial_bits * config.lanes
    # A DSP slice has room for two sums, unless it makes two products.
    outside = config.folds if config.packs_values else max(0, config.folds - 2)
    lut = _ROW_LUT + _LANE_LUT * config.lanes + sums * (_SUM_LUT + _OUTSIDE_LUT * outside)
    ff = _ROW_FF + _LANE_FF * config.lanes + sums * (_SUM_FF + _OUTSIDE_FF * outside)
    lut += _MERGE_LANE_LUT * config.merge_lanes + _CAP_LUT * config.logit_cap + _ALIBI_LUT * config.alibi
    ff += _MERGE_LANE_FF * config.merge_lanes + _CAP_FF * config.logit_cap + _ALIBI_FF * config.alibi
    # Values; scale and exponential; gain and cap; slope.
    values = config.lanes // 2 if config.packs_values else config.lanes
    return lut, ff, values + 2 + 2 * config.logit_cap + config.alibi


def _result(config: AttentionConfig, beat_width: int) -> tuple[float, float, int]:
    """Return LUT, FF and DSP of a row's results, which leave in beats of ``beat_width`` bits."""
    lanes, joined = config.merge_lanes, config.streams if config.streams > 1 else 0
    lut = _RESULT_LUT + _RESULT_LANE_LUT * lanes + _RESULT_BIT_LUT * beat_width
    ff = _RESULT_FF + _RESULT_LANE_FF * lanes + _RESULT_BIT_FF * beat_width
    return (
        lut + joined * (_JOIN_LUT + _JOIN_LANE_LUT * lanes),
        ff + joined * (_JOIN_FF + _JOIN_LANE_FF * lanes),
        lanes + (config.output != "int16"),
    )
