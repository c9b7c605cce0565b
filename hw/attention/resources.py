"""FPGA resources of an attention kernel: an estimate that errs on the high side."""

from hw.attention.config import AttentionConfig
from hw.attention.movers.cache import ULTRA_DEPTH
from hw.board.resources import BLOCK_WORDS, ULTRA_WORDS, Gates, RamWords, Resources, rams

# Counts of Yosys, by `synth_xilinx -family xcup -flatten`, with 64 lanes in two folds, 20-bit probabilities
# and four merge lanes.  Two rows of a stream: 5,508 LUT and 4,213 more as LUTRAM, 5,036 FF and 196 DSP48E2.
# Their results of two streams at four ports: 7,989 + 1,280 LUT, 4,933 FF and 8 DSP48E2.  All else of a kernel
# with two streams, fifteen ports of 256 bits and caches of 16,384 keys: 72,897 + 9,284 LUT, 79,597 FF, 14
# DSP48E2, 63 block RAMs and 60 UltraRAMs.  With 16 rows that is 311,869 LUT and 199,637 FF; the estimate is
# 316,319 and 218,791.

# A row of a stream, with scale and exponential; a lane of it, apart from the sums; a bit of a lane's sum, and
# of a sum outside its slice.
_ROW, _LANE, _SUM, _OUTSIDE = Gates(800, 1050, 2), Gates(14, 11), Gates(0.92, 0.05), Gates(1.0, 1.0)
# A merge lane of a row of a stream; a row's results, their lanes, a bit of their ports, and the multiplier of
# results other than int16.  With several streams, the joining of one of them, and of a lane of it.
_MERGE_LANE = Gates(300, 250)
_RESULT, _RESULT_LANE, _RESULT_BIT = Gates(500, 200), Gates(310, 150, 1), Gates(0.6, 1.0)
_SCALED = Gates(dsp=1)
_JOIN, _JOIN_LANE = Gates(230, 100), Gates(230, 75)
# Options, in a row of a stream: gain and cap; slope.
_CAP, _ALIBI = Gates(350, 350, 2), Gates(200, 250, 1)
# Pages, in a stream: the lookup, its entries, and a share of the common parts.
_PAGES = Gates(900, 900)
# Control of the core; a stream, and the registers of a lane's parts on their path to its rows.
_CORE, _STREAM, _STREAM_LANE, _STREAM_BRAM = Gates(12000, 8000, 6), Gates(dsp=4), Gates(ff=100), 2
# A port at 256 bits: DMA, cutter, queues; the length of a port of keys or values.
_PORT, _LENGTH = Gates(5000, 4300), Gates(dsp=1)
# A kernel that decodes: a port of queries, keys or values, without a cutter; a bit that selects a stream's
# part or a cell's own; the combination of all cells.
_PART_PORT, _CHOICE, _CELLS = Gates(400, 600), Gates(1, 2), Gates(5000, 5000)


def estimate(config: AttentionConfig, data_width: int) -> Resources:
    """Estimate a kernel."""
    rows, streams, ports = config.rows, config.streams, config.ports
    ultra = config.cached_keys >= ULTRA_DEPTH
    cache_rams = _cache_rams(config, config.cached_keys)
    # Every reader buffers 512 beats, and every writer too, with strobes beside the data.
    writers = config.result_ports
    readers = 1 + config.query_port_count + 2 * streams * ports
    buffers = readers * rams(data_width, BLOCK_WORDS)
    buffers += writers * rams(data_width + data_width // 8 + 1, BLOCK_WORDS)
    # Two rows share a table of the cap.
    tables = streams * -(-rows // 2) if config.logit_cap else 0
    # A pair of rows shares the multipliers of its scores.
    scores = Gates(dsp=-(-rows // 2) * config.lanes)
    gates = (
        _CORE
        + _rows(config, data_width, rows)
        + streams * (_STREAM + scores + config.lanes * _STREAM_LANE)
        + _ports(config, data_width / 256)
        + 2 * streams * ports * _LENGTH
        + streams * config.paged * _PAGES
    )
    bram36 = buffers + streams * _STREAM_BRAM + tables
    if ultra:
        return gates.with_rams(bram36=bram36, uram=cache_rams)
    return gates.with_rams(bram36=bram36 + cache_rams)


def ram_words(config: AttentionConfig, data_width: int) -> RamWords:
    """Count the RAMs of a busy cycle: of the caches those with the keys and values of one column."""
    need = estimate(config, data_width)
    asleep = _cache_rams(config, config.cached_keys) - _cache_rams(config, min(1, config.cached_keys))
    if config.cached_keys >= ULTRA_DEPTH:
        return RamWords(bram36=need.bram36, uram=need.uram - asleep)
    return RamWords(bram36=need.bram36 - asleep)


def _cache_rams(config: AttentionConfig, keys: int) -> int:
    """Count the RAMs of the caches with ``keys`` of their keys and values."""
    most = ULTRA_WORDS if config.cached_keys >= ULTRA_DEPTH else BLOCK_WORDS
    return 2 * config.streams * rams(config.part_bits, keys, most)


def cell_estimate(config: AttentionConfig, data_width: int, *, rows: int) -> Resources:
    """Estimate one or two rows of all streams with their results, which share a die."""
    gates = _rows(config, data_width, rows) + Gates(dsp=config.streams * config.lanes)
    return gates.with_rams(bram36=config.streams * config.logit_cap)


def _ports(config: AttentionConfig, width: float) -> Gates:
    """Return the ports, each ``width`` times 256 bits, and the paths to cells."""
    others = (1 + config.result_ports) * width
    part_ports = config.query_port_count + 2 * config.streams * config.ports
    if not config.decodes:
        return (others + part_ports * width) * _PORT
    return others * _PORT + part_ports * _PART_PORT + part_ports * config.part_bits * _CHOICE + _CELLS


def _rows(config: AttentionConfig, data_width: int, rows: int) -> Gates:
    """Return rows of all streams with their results, without the multipliers of their scores."""
    result = _result(config, config.result_ports * config.result_slice(data_width))
    return rows * (config.streams * _row(config) + result)


def _row(config: AttentionConfig) -> Gates:
    """Return a row of a stream, without the multipliers of its scores."""
    # A DSP slice has room for two sums, unless it makes two products.
    outside = config.folds if config.packs_values else max(0, config.folds - 2)
    sums = config.partial_bits * config.lanes * (_SUM + outside * _OUTSIDE)
    values = Gates(dsp=config.lanes // 2 if config.packs_values else config.lanes)
    options = config.merge_lanes * _MERGE_LANE + config.logit_cap * _CAP + config.alibi * _ALIBI
    return _ROW + config.lanes * _LANE + sums + values + options


def _result(config: AttentionConfig, beat_width: int) -> Gates:
    """Return a row's results, which leave in beats of ``beat_width`` bits."""
    lanes, joined = config.merge_lanes, config.streams if config.streams > 1 else 0
    own = _RESULT + lanes * _RESULT_LANE + beat_width * _RESULT_BIT
    return own + joined * (_JOIN + lanes * _JOIN_LANE) + (config.output != "int16") * _SCALED
