"""Gather without a buffer: every neighbour of every tap is read from memory when its result is computed.

The arrays are the engine's own, and so is the layout of maps: pixel by pixel, over as many ports. All
assumptions favour it.  Neighbours side by side in memory are one request.  These are both of a row; all taps
of a row of a plain kernel; the whole map of a 1 x 1 kernel.  A neighbour without weight or outside the map is
not read. A pixel's samples are kept for all output channels, and weights and offsets cost no time. Layers
follow each other.  It is "deform" of CoDeNet's table 2 (arXiv 2006.08357) at its best.
"""

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.conv.driver.workload import busy_cycles
from sim.engines.conv.baselines.memory import BaselinePort
from sim.engines.conv.baselines.work import Cost, LayerOffsets, Work

#: Outstanding requests of a port: as many as the engine's.
OUTSTANDING = 64

Counts = NDArray[np.int64]


def gather(work: Work, config: ConvConfig, board: Board) -> Cost:
    """Return the cost of gathering on the arrays and ports of ``config``."""
    costs = [
        _layer(layer, offset, config, board)
        for layer, offset in zip(work.layers, work.offsets(config.fraction_bits), strict=True)
    ]
    return Cost(
        cycles=sum(cost.cycles for cost in costs),
        moved_bytes=sum(cost.moved_bytes for cost in costs),
        useful_macs=work.useful_macs,
        macs=costs[0].macs,
    )


def _layer(layer: ConvLayer, offset: LayerOffsets | None, config: ConvConfig, board: Board) -> Cost:
    pixels = requested_pixels(layer, offset)
    rows, columns = layer.out_size
    out_units = MapForm(channels=layer.outputs).units(config)
    port = BaselinePort.of(
        board,
        beat_bytes=config.port_width(board.memory.port_data_width) // 8,
        outstanding=OUTSTANDING,
        sharing=-(-config.ports // board.memory.channels),
    )
    cycles = float(busy_cycles(config, (layer,)))
    for units, written in zip(MapForm(channels=layer.channels).units(config), out_units, strict=True):
        beats = int((-(-pixels * units // port.beat_bytes)).sum())
        write_beats = -(-rows * columns * written // port.beat_bytes)
        requests = len(pixels) if units else 0
        cycles = max(cycles, port.read_cycles(requests, beats) - port.read_latency)
        cycles = max(cycles, write_beats * port.beat_cycles, port.shared_cycles(beats, write_beats))
    per_pixel = {Offsets.NONE: 0, Offsets.SQUARE: 1, Offsets.FREE: 2 * layer.taps}[layer.offsets]
    weights = layer.outputs * (layer.channels // layer.group) * layer.taps * config.weight_bits // 8
    read = int(pixels.sum()) * layer.channels + weights + 2 * per_pixel * rows * columns
    return Cost(
        cycles=port.read_latency + cycles + port.write_latency,
        moved_bytes=read + layer.outputs * rows * columns,
        useful_macs=layer.useful_macs,
        macs=config.inputs * config.outputs + config.lanes * config.taps,
    )


def requested_pixels(layer: ConvLayer, offset: LayerOffsets | None) -> Counts:
    """Return the pixels side by side of each request, in the order of requests within a tap."""
    if layer.kind is LayerKind.POINTWISE:
        return np.full(layer.rows, layer.columns)
    ys, xs = _taps(layer)
    if offset is None:
        # A row of the kernel: adjacent taps are one request, others one each.
        inside = (xs >= 0) & (xs < layer.columns)  # [kW, oW]
        beside = layer.dilations[1] == 1
        widths = inside.sum(axis=0) if beside else inside.reshape(-1).astype(np.int64)
        count = int(((ys >= 0) & (ys < layer.rows)).sum())
        return np.tile(widths[widths > 0], count)
    y = ys[:, np.newaxis, :, np.newaxis] + offset.dy.reshape(*layer.kernel, *layer.out_size)
    x = xs[np.newaxis, :, np.newaxis, :] + offset.dx.reshape(*layer.kernel, *layer.out_size)
    widths = _neighbours(x, layer.columns).reshape(-1)
    lines = _neighbours(y, layer.rows).reshape(-1)
    return np.repeat(widths[widths > 0], lines[widths > 0])


def _taps(layer: ConvLayer) -> tuple[Counts, Counts]:
    """Return rows ``[kH, oH]`` and columns ``[kW, oW]`` of taps without offsets."""
    found = []
    for axis in (0, 1):
        tap = np.arange(layer.kernel[axis]) * layer.dilations[axis] - layer.pads[axis]
        found.append(tap[:, np.newaxis] + np.arange(layer.out_size[axis]) * layer.strides[axis])
    return found[0], found[1]


def _neighbours(at: NDArray[np.float64], size: int) -> Counts:
    """Count the neighbours along an axis that have a weight and are in the map: 0, 1 or 2."""
    first = np.floor(at)
    second = (at > first) & (first + 1 >= 0) & (first + 1 < size)
    return ((first >= 0) & (first < size)).astype(np.int64) + second
