"""The contents of the streams of weights, in order of use."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hw.conv.config import ConvConfig
from hw.conv.core.packets import RECORD_BITS, Record
from hw.conv.driver.buffer import BufferPlan
from hw.conv.driver.layer import ConvLayer, LayerKind


@dataclass(frozen=True, kw_only=True)
class PointLanes:
    """The lanes of a layer's channels at the pointwise array."""

    #: ``inputs``, ``outputs``: the lane of each channel, over the words of a pixel, or of one of several
    #: taps.
    inputs: Sequence[int]
    outputs: Sequence[int]
    #: ``taps``, ``words``: taps, and words of each.
    words: int
    group: int = 1  #: Groups of channels without weights in common.
    taps: int = 1
    digits: int = 1  #: Of a sample; 1 for a pixel.


class WeightTile(NamedTuple):
    """Weights of PA input lanes of a tap for PE output lanes.

    ``inputs`` and ``outputs`` are slices of PA and of PE lanes; the rest is as in
    `hw.conv.core.packets.TileHeader`, but ``word`` counts the words of a whole pixel.
    """

    outputs: int
    digit: int
    tap: int
    inputs: int
    word: int
    first: bool
    last: bool
    ends: bool


def tiles(config: ConvConfig, lanes: PointLanes) -> list[WeightTile]:
    """List the tiles of a block: all that have an input and an output channel of one group."""
    sources = _groups(lanes.inputs, config.inputs, lanes.group)
    targets = _groups(lanes.outputs, config.outputs, lanes.group)
    slices = config.lanes // config.inputs
    found: list[WeightTile] = []
    for target in sorted(targets):
        used = [source for source in sorted(sources) if sources[source] & targets[target]]
        parts = [
            (d, tap, source) for d in range(lanes.digits) for tap in range(lanes.taps) for source in used
        ]
        for n, (digit, tap, source) in enumerate(parts):
            found.append(
                WeightTile(
                    outputs=target,
                    digit=digit,
                    tap=tap,
                    inputs=source,
                    word=(digit * lanes.taps + tap) * lanes.words + source // slices,
                    first=n == 0,
                    last=n == len(parts) - 1,
                    ends=False,
                )
            )
    return [*found[:-1], found[-1]._replace(ends=True)]


def tile_beats(config: ConvConfig, beat_bits: int, *, first: bool) -> int:
    """Count the beats of a tile: its header, its parameters if it is the first, and its weights."""
    parameters = -(-config.outputs * RECORD_BITS // beat_bits) if first else 0
    return 1 + parameters - (-config.tile_bits // beat_bits)


def packets(config: ConvConfig, layer: ConvLayer, buffer: BufferPlan) -> list[tuple[Record, int]]:
    """List kind and records of each packet of a layer that is sampled; see `TapLoader`.

    None where samples leave and offsets are read.
    """
    lanes = buffer.words * config.lanes
    cells = lanes // config.cell_lanes
    found = []
    if layer.dot:
        found = [(Record.DOT, cells * buffer.passes), (Record.DOT_PARAMETERS, 2 * buffer.passes)]
    if layer.kind is not LayerKind.DEPTHWISE:
        return found
    if buffer.strip:
        return [*found, (Record.STRIPS, lanes), (Record.PARAMETERS, lanes)]
    return [*found, (Record.TAPS, cells * buffer.steps), (Record.PARAMETERS, lanes)]


def packet_beats(records: int, beat_bits: int) -> int:
    """Count the beats of a packet: its header and its records."""
    return 1 - (-records * RECORD_BITS // beat_bits)


def _groups(lanes: Sequence[int], size: int, group: int) -> dict[int, set[int]]:
    """Return the groups of channels in each slice of ``size`` lanes."""
    found: dict[int, set[int]] = {}
    for channel, lane in enumerate(lanes):
        found.setdefault(lane // size, set()).add(channel * group // len(lanes))
    return found
