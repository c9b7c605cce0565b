"""Commands of the matrix, the vector and the attention unit, as plain data.

Addresses and pitches are in granules of 16 bytes.  Addresses wrap at the end of the scratchpad.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Core(enum.IntEnum):
    """Units that execute commands."""

    MATRIX = 0
    VECTOR = 1
    ATTENTION = 2


@dataclass(frozen=True, kw_only=True)
class Follow:
    """Reads of a command that follow the writes of a core, word by word.

    Read ``tile * per_tile + n`` of the command's gated reads waits until ``core`` has written
    ``first + tile * tile_step + n * step + 1`` words since the launch began.  Reads after the last tile wait
    for nothing else.
    """

    core: Core
    first: int  #: Word of the first read, counted from 0.
    step: int  #: Words from a read to the next one of its tile.
    tile_step: int  #: Words from a tile to the next.
    per_tile: int  #: Reads of a tile, at least 1.
    tiles: int  #: At least 1.


@dataclass(frozen=True, kw_only=True)
class TapTile:
    """A row of the tap table: the 64 bytes that one pixel adds to a sum, or one row of a pool's window.

    The word of output pixel (y, x) lies at ``source.base + y * source.down + x * source.across + offset``.
    Its granule ``i`` is the source's zero point unless ``valid[i]``, input row ``y * stride_y + row`` and
    column ``x * stride_x + columns[i]`` exist.
    """

    offset: int  #: Signed.
    row: int  #: Signed.
    columns: tuple[int, ...]  #: Of each granule; signed.
    valid: tuple[bool, ...] = (True, True, True, True)  #: Of each granule.


@dataclass(frozen=True, kw_only=True)
class Source:
    """A tensor that is read pixel by pixel, in the order of the output's pixels."""

    base: int  #: Address of the pixel of output pixel (0, 0), before the tap's offset.
    across: int = 0  #: Distance of pixels of neighbouring output columns.
    down: int = 0  #: Distance of pixels of neighbouring output rows.
    zero: int = 0  #: Zero point.


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Rows and columns of the image that taps may meet, and the strides of the window."""

    height: int
    width: int
    stride_y: int = 1
    stride_x: int = 1


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where results go: output pixel p at ``base + p * pitch``."""

    base: int
    pitch: int
    granules: int  #: Of one pixel: 16 int8 or 8 int16 each.
    zero: int = 0
    low: int = -128
    high: int = 127


@dataclass(frozen=True, kw_only=True)
class Addition:
    """A sum: ``(first * (a - a_zero) + second * (b - b_zero)) / 2^shift + zero``, to even."""

    first: int
    second: int
    shift: int
    exceptions: tuple[tuple[int, int], ...] = ()  #: Stored a and b whose rounding is inverted.


@dataclass(frozen=True, kw_only=True)
class MatrixCommand:
    """A convolution of an output row range: ``rows`` times ``columns`` pixels.

    A column tile has all columns of the array, half of them with ``halves``.  Its taps are those of tile 0,
    ``group_step`` granules further for each tile.
    """

    rows: int
    columns: int
    source: Source
    bounds: Bounds
    first_tap: int  #: ``first_tap``, ``taps``: rows of the tap table.
    taps: int
    group_step: int = 0
    shifts: tuple[int, ...] = ()  #: Left shift, 0 to 7, of each tap's products in a sum; empty: of none.
    column_tiles: int
    target: Target
    halves: bool = False  #: Two pixels a cycle: at most 32 columns, which stand twice in the packets.
    weights: int  #: Index of its pass in the weights.
    #: Of a result: 8 or 16.  int16 have no table, no zero point and no exceptions; their residual is int16.
    bits: int = 8
    residual: Source | None = None  #: Read like the target, pixel by pixel in a row.
    addition: Addition | None = None  #: Of result and residual.
    sum_target: tuple[int, int, int] = (0, -128, 127)  #: Zero point and bounds of the sum.
    table: int = -1  #: Index of a table of 256 bytes that the results pass last; -1 without.


class VectorKind(enum.IntEnum):
    """Work of the vector unit."""

    MAX = 0
    MEAN = 1
    ADD = 2
    MULTIPLY = 3
    TABLE = 4
    SOFTMAX = 5
    STATS = 6  #: Statistics of each pixel of int16, kept in the unit.
    NORM = 7  #: LayerNorm of int16 by these statistics.
    ADD16 = 8  #: As `ADD`, of int16.
    MEAN16 = 9  #: Of int16.


@dataclass(frozen=True, kw_only=True)
class VectorCommand:
    """Element-wise work or a pool on an output row range.

    A window is ``taps`` rows of the tap table, each of ``kernel_columns`` pixels ``column_step`` apart, the
    first at ``columns[0]`` of the tap.

    Granules of int16 have 8 of them, little-endian, with zero point 0.  ``addition`` of `ADD16` and `MEAN16`
    has a shift from 20 to 35 and no exceptions; a mean is the sum of its window times ``first``.  Statistics
    and LayerNorm have one row of pixels, which lie in the unit from ``pixel`` on, and a tap without distance.
    Statistics write nothing; a source's channels beyond ``channels`` are 0.
    """

    kind: VectorKind
    rows: int
    columns: int
    sources: tuple[Source, ...]
    target: Target
    bounds: Bounds
    first_tap: int = 0
    taps: int = 1
    kernel_columns: int = 1
    column_step: int = 0  #: Columns of the image between taps.
    column_granules: int = 0  #: Granules between taps.
    #: float32: of a mean, by the number of elements in the image, from 1 on, or one; of a product, one.
    scales: tuple[float, ...] = ()
    #: Of a mean or a product: the zero point is added before the rounding, so ties are even with it.
    zero_first: bool = False
    exceptions: tuple[tuple[int, int], ...] = ()  #: Of a product: stored operands whose rounding is inverted.
    addition: Addition | None = None
    table: int = -1  #: Index of its table of 256 bytes; of a softmax, of its exponentials.
    channels: int = 0  #: Of a softmax, of statistics, of a LayerNorm.
    steps: int = 0  #: Of a softmax: `integers.softmax_units`.
    bits: int = 8  #: Of a LayerNorm's results: 8 or 16.
    epsilon: int = 1  #: Of statistics: E of `hw.network.normalization`.
    pixel: int = 0  #: Of statistics and of a LayerNorm: where the statistics of the first pixel are kept.
    norm: int = -1  #: Of a LayerNorm: index of its `ChannelRows`.
    shift: int = 0  #: Of a LayerNorm, as of these.


@dataclass(frozen=True, kw_only=True)
class HeadTensor:
    """A tensor of heads: row ``t`` of head ``h`` begins at ``base + t * pitch + h * step``."""

    base: int
    pitch: int  #: Distance of neighbouring rows of a head.
    step: int  #: Distance of neighbouring heads.


@dataclass(frozen=True, kw_only=True)
class AttentionCommand:
    """Attention of some heads of one segment: ``softmax(scale * q k^T) v`` of each, from int8 to int8.

    Numbers are those of ``docs/attention-specification.md``.
    """

    heads: int
    queries: int  #: Rows of ``q`` and ``out``.
    keys: int  #: Rows of ``k`` and ``v``.
    head_dim: int  #: Elements of a row: a multiple of 16.
    causal: bool = False  #: Query ``i`` sees keys up to ``i + keys - queries``; there are no more queries.
    q: HeadTensor
    k: HeadTensor
    v: HeadTensor
    out: HeadTensor
    multiplier: int  #: ``multiplier``, ``shift``: raw score to log2 units.
    shift: int
    output_multiplier: int  #: ``output_multiplier``, ``output_shift``: of the results, m_o and s_o.
    output_shift: int


#: A command of any core.
Command = MatrixCommand | VectorCommand | AttentionCommand


def core_of(command: Command) -> Core:
    """Return the unit that executes a command."""
    if isinstance(command, AttentionCommand):
        return Core.ATTENTION
    return Core.MATRIX if isinstance(command, MatrixCommand) else Core.VECTOR
