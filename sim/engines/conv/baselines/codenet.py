"""A schedule like CoDeNet's: a pipeline of a 1 x 1 and a depthwise 3 x 3 unit, run layer after layer.

Dong et al., "CoDeNet", FPGA 2021 (arXiv 2006.08357), section 5; loops and sizes are those of its source
(``hqjenny/CoDeNet``, ``hls/top``: ``deform.cpp``, ``conv.h``, ``dma.h``).  Assumptions:

* Words of 16 channels, one a cycle through each unit; 16 x 16 multipliers for 1 x 1, 16 x 9 for 3 x 3.
* All units run at once (HLS dataflow); a run begins when its weights, scales and biases are on chip.
* 1 x 1: a pixel's words are loaded, then each tile of outputs takes a cycle for each of them.
* Line buffer: a pixel's words are stored, then those of a result are read, 8 rows later, in turn.
* Each entry into a pipelined loop costs ``loop_cycles`` beside its iterations; 0 is the loops at their best.
* A 1 x 1 layer and the depthwise one behind it share a run; every other layer has its own.
* Map and result have a port each of 16 bytes a beat; offsets of a byte a pixel come from memory.
* The first layer, a full 3 x 3, is done by the processor: it costs nothing here and counts for nothing.

Its operation table (table 2) has an array of 8 x 8 x 9 multipliers for full 3 x 3 layers.  Its source is not
published.  The formula assumes a cycle for each tile of 8 x 8, and words of 8 channels.  Offsets that are
bounded but not square have nine addresses where the buffer has three ports.  A word of nine taps is read in
three cycles. Without a bound there is no line buffer ("deform" of table 2).  A pixel is then read from memory
for each tap, with offsets of whole pixels, one request after the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hw.board import Board
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer, LayerKind
from sim.engines.conv.baselines.memory import BaselinePort
from sim.engines.conv.baselines.work import Cost, Work

#: Cycles of a loop beside its iterations, fitted to CoDeNet's measurements of the convolutions of
#: configurations c and d, to within 2 % (`PUBLISHED`).  The HLS source does not state them.
LOOP_CYCLES = 11
#: Its clock, and its published milliseconds: of operations without and with a last-level cache (table 2), and
#: of the convolutions of networks (its notebook, ``sw/codenet.ipynb``).
CLOCK_MHZ = 250.0
PUBLISHED: dict[str, tuple[float, ...]] = {
    "full": (43.1, 41.6),
    "full, deformable": (59.0, 42.7),
    "full, bounded": (43.4, 41.8),
    "full, square": (43.4, 41.8),
    "depthwise": (1.9, 2.0),
    "depthwise, deformable": (20.5, 17.8),
    "depthwise, bounded": (3.0, 3.4),
    "depthwise, square": (2.1, 2.3),
    "config a": (19.7,),
    "config c": (66.0,),
    "config d": (124.0,),
}
#: Rows that are stored before the first result.
LEAD_ROWS = 8
_LANES, _FULL_LANES = 16, 8
_POINT_MACS, _TAP_MACS, _FULL_MACS = 16 * 16, 16 * 9, 8 * 8 * 9
#: Bytes of a beat, and bursts under way of an HLS port by default.
_BEAT_BYTES, _OUTSTANDING = 16, 16


@dataclass(frozen=True, kw_only=True)
class PipelineRun:
    """One run of the pipeline; either layer may be missing."""

    #: ``point``, ``taps``: a 1 x 1 layer, and a 3 x 3 one of its results.
    point: ConvLayer | None = None
    taps: ConvLayer | None = None

    @property
    def layers(self) -> Sequence[ConvLayer]:
        """Its layers, in order."""
        return [layer for layer in (self.point, self.taps) if layer is not None]


def runs(layers: Sequence[ConvLayer]) -> Iterator[PipelineRun]:
    """Group layers into runs; layers that the pipeline cannot do are left out, unless there are no others."""
    waiting: ConvLayer | None = None
    for layer in layers:
        if layer.kind is LayerKind.POINTWISE:
            if waiting is not None:
                yield PipelineRun(point=waiting)
            waiting = layer
            continue
        follows = (
            waiting is not None
            and layer.kind is LayerKind.DEPTHWISE
            and layer.offsets is Offsets.NONE
            and (waiting.outputs, *waiting.out_size) == (layer.channels, layer.rows, layer.columns)
        )
        if waiting is not None and not follows:
            yield PipelineRun(point=waiting)
        if layer.kind is LayerKind.DEPTHWISE or len(layers) == 1:
            yield PipelineRun(point=waiting if follows else None, taps=layer)
        waiting = None
    if waiting is not None:
        yield PipelineRun(point=waiting)


def codenet(work: Work, board: Board, *, loop_cycles: int = LOOP_CYCLES) -> Cost:
    """Return the cost of the schedule."""
    done = list(runs(work.layers))
    layers = [layer for run in done for layer in run.layers]
    full = any(layer.kind is LayerKind.SAMPLES for layer in layers)
    macs = _FULL_MACS if full else _TAP_MACS
    if any(layer.kind is LayerKind.POINTWISE for layer in layers):
        macs += _POINT_MACS
    return Cost(
        cycles=sum(run_cycles(run, board, loop_cycles) for run in done),
        moved_bytes=sum(_read_bytes(run) + _result_bytes(run.layers[-1]) for run in done),
        useful_macs=sum(layer.useful_macs for layer in layers),
        macs=macs,
    )


def run_cycles(run: PipelineRun, board: Board, loop_cycles: int) -> float:
    """Return the cycles of a run, from its first read to its last response."""
    first, last = run.layers[0], run.layers[-1]
    port = BaselinePort.of(
        board, beat_bytes=_BEAT_BYTES, outstanding=_OUTSTANDING, sharing=-(-2 // board.memory.channels)
    )
    beats = -(-first.channels * first.rows * first.columns // port.beat_bytes)
    bursts = -(-beats // board.memory.burst_beats)
    units = unit_cycles(run, loop_cycles, request_cycles=port.read_latency)
    steady = max(
        units,
        port.read_cycles(bursts, beats) - port.read_latency,
        -(-_result_bytes(last) // port.beat_bytes) * port.beat_cycles,
    )
    return _parameter_cycles(run) + port.read_latency + steady + port.write_latency


def unit_cycles(run: PipelineRun, loop_cycles: int, *, request_cycles: int) -> int:
    """Return the cycles from the first word of the map to the last one of the result.

    The slower of two loops counts.  After the last pixel of the 1 x 1 unit `LEAD_ROWS` rows are still to be
    read; the line buffer stores and reads in turn.  A full 3 x 3 unit begins after the first rows. Without a
    line buffer, a tap takes ``request_cycles`` and its words.
    """
    first, last = run.layers[0], run.layers[-1]
    full = first.kind is LayerKind.SAMPLES
    lanes = _FULL_LANES if full else _LANES
    pixels, results = first.rows * first.columns, last.out_size[0] * last.out_size[1]
    load = -(-first.channels // lanes) + loop_cycles
    tiles = -(-last.outputs // lanes)
    store = (load if run.point is None else tiles + loop_cycles) * pixels
    point = pixels * (load if run.point is None else load + tiles * load)
    if run.taps is None:
        return max(point, store)
    if _gathers(run.taps):
        fetched = results * run.taps.taps * (request_cycles + -(-run.taps.channels // _LANES) + loop_cycles)
        return max(fetched, results * (load + tiles * load) if full else 0)
    reads = 3 if run.taps.offsets is Offsets.FREE else 1  # cycles in which the nine taps of a word are read
    read = reads * -(-run.taps.channels // lanes) + loop_cycles
    rows = min(LEAD_ROWS, last.out_size[0])
    behind = rows * last.out_size[1] * read
    sampled = LEAD_ROWS * first.columns * load + results * (load + tiles * load) if full else 0
    return max(point + behind, store + results * read, sampled)


def _gathers(layer: ConvLayer) -> bool:
    """Return whether offsets reach farther than any line buffer."""
    return layer.offsets is not Offsets.NONE and layer.bound is None


def _parameter_cycles(run: PipelineRun) -> int:
    """Return the cycles until weights, scales and biases are on chip: the slowest of their ports.

    A word of 16 weights a cycle, or a scale or a bias of a channel.
    """
    words = [_weights(layer) // _LANES for layer in run.layers]
    return max(*words, 2 * sum(layer.outputs for layer in run.layers))


def _weights(layer: ConvLayer) -> int:
    """Count the weights, padded to words."""
    inputs = layer.channels // layer.group
    whole = _LANES if layer.kind is not LayerKind.DEPTHWISE else 1
    return layer.outputs * layer.taps * -(-inputs // whole) * whole


def _read_bytes(run: PipelineRun) -> int:
    """Count the bytes read: map, weights of 4 bits, scales and biases of 2 bytes, offsets of a byte."""
    first, last = run.layers[0], run.layers[-1]
    results = last.out_size[0] * last.out_size[1]
    pixels = results * last.taps if _gathers(last) else first.rows * first.columns
    given = first.channels * pixels
    given += sum(_weights(layer) // 2 + 4 * layer.outputs for layer in run.layers)
    numbers = {Offsets.NONE: 0, Offsets.SQUARE: 1, Offsets.FREE: 2 * last.taps}[last.offsets]
    return given + numbers * results


def _result_bytes(layer: ConvLayer) -> int:
    return layer.outputs * layer.out_size[0] * layer.out_size[1]
