"""The timing of the pointwise unit: blocks in, sweeps, results out."""

from collections.abc import Callable, Mapping, Sequence

from hw.conv.config import ConvConfig
from hw.conv.core.bypass_cut import BypassCut
from hw.conv.core.pointwise.cell import PointwiseCell
from hw.conv.core.pointwise.drain import Drain
from hw.conv.model.flow import Source, WordSpan, paced
from hw.conv.model.latency import Latency
from hw.conv.model.supply import TileBeats, Weights
from hw.conv.model.waits import BUSY, INPUT, OUTPUT, WEIGHT, CycleCounts

#: Fewest tiles for which vectorized sweeps are faster.
_MANY = 128


class PointState:
    """The state of the unit when a layer begins."""

    def __init__(self) -> None:
        self.pixel = 0  # the earliest first pixel of the next tile
        self.reload = 0  # the earliest load of the next tile
        self.blocks = Halves()
        self.bypass = Halves()
        self.results: list[int] = [0, 0]  # when halves of results were drained


class Halves:
    """The cycles in which the halves of a buffer were released, and that of its last word."""

    def __init__(self) -> None:
        self.released = [-(1 << 40)] * 2
        self.last = -1


class BlockFill:
    """Blocks of a layer, filled into a buffer of two halves.

    ``issued``: cycle of the command. ``words``: of each block. ``pace``: fewest cycles of a word.
    """

    def __init__(
        self,
        latency: Latency,
        halves: Halves,
        *,
        issued: int,
        words: Callable[[int], int],
        pace: float = 1,
    ) -> None:
        self._latency, self._halves, self._issued = latency, halves, issued
        self._words, self._pace = words, pace
        self._before = len(halves.released) - 2  # blocks of earlier layers
        self._block = 0
        self.source: Source

    def token(self, block: int) -> int | None:
        """Return when a block has room; None if that is not known."""
        if self._before + block >= len(self._halves.released):
            return None
        released = self._halves.released[self._before + block]
        return max(self._issued + self._latency.block_token, released + self._latency.block_again)

    def next(self) -> int:
        """Return the last word of the next block."""
        latency, halves = self._latency, self._halves
        free = max(
            self._issued + latency.block_start,
            halves.released[self._before + self._block] + latency.block_room,
            halves.last + 1,
        )
        left = self._words(self._block)
        while left:
            piece = paced(self.source.offer(left), free, pace=self._pace)
            self.source.accept(piece)
            free, left = piece.last + 1, left - piece.words
        halves.last = free - 1
        self._block += 1
        return halves.last


class PointJob:
    """A pointwise layer; its results in the order in which they leave.

    ``issued``: cycle of its commands. ``words``: number of words that leave. ``tiles``: beats of each tile.
    ``bypass``: another map is shuffled in.
    """

    def __init__(
        self,
        config: ConvConfig,
        latency: Latency,
        activity: CycleCounts,
        state: PointState,
        weights: Weights,
        fields: Mapping[str, int],
        *,
        issued: int,
        words: int,
        tiles: Sequence[int],
        bypass: bool,
    ) -> None:
        self._latency, self._activity, self._state, self._weights = latency, activity, state, weights
        self._fields, self._tiles, self._beats = fields, tiles, TileBeats(tiles)
        self._least = PointwiseCell.least_sweep(config)
        self._active = issued + latency.active
        pixels = fields["blocks"] * fields["block"] - fields["block"] + fields["last_block"]
        self._leaving = words // pixels
        #: ``fill``, ``bypass``: of the map, and of its bypass if any; the `source` of each must be set first.
        self.fill = BlockFill(
            latency, state.blocks, issued=issued, words=lambda n: self._pixels(n) * fields["block_words"]
        )
        self.bypass: BlockFill | None = None
        if bypass:
            pixel = fields["bypass_in_words"]  # before they are cut
            cycles = BypassCut.pixel_cycles(
                config, parts=fields["bypass_parts"], channels=fields["bypass_channels"]
            )
            self.bypass = BlockFill(
                latency,
                state.bypass,
                issued=issued,
                words=lambda n: self._pixels(n) * pixel,
                pace=cycles / pixel,
            )
        # Results leave after those of the previous layer.
        self._block, self._left, self._free = 0, 0, state.results[-1] + Drain.LAYER_INTERVAL

    def _pixels(self, block: int) -> int:
        return self._fields["last_block" if block == self._fields["blocks"] - 1 else "block"]

    def offer(self, most: int) -> WordSpan:
        """Return words of the current block."""
        if not self._left:
            self._free = max(self._free, self._sweep() + self._latency.drain)
            self._left = self._pixels(self._block) * self._leaving
            self._block += 1
        words = min(most, self._left)
        return WordSpan(words, self._free, self._free + words - 1)

    def accept(self, piece: WordSpan) -> None:
        """Accept them; the next offer is of the words after them."""
        self._left -= piece.words
        self._free = piece.last + 1
        if not self._left:
            self._state.results.append(piece.last)
            if self.bypass is not None:
                self._state.bypass.released.append(piece.last)

    def _sweep(self) -> int:
        """Sweep the next block; returns when its results may leave."""
        latency, state, activity = self._latency, self._state, self._activity
        pixels = self._pixels(self._block)
        cycles = max(pixels, self._least)
        full = self.fill.next() + latency.sweep
        room = state.results[-2] + latency.freed_half
        tile = self._weights.tile(self._tiles[0], free=state.reload) + latency.tile
        idle = max(state.pixel, self._active)
        begin = max(tile, idle, full, room)
        for cause, until in ((WEIGHT, tile), (INPUT, full), (OUTPUT, room)):
            activity.add(cause, idle, min(until, begin))
        activity.add(BUSY, begin, begin + pixels)
        n = 1
        while n < len(self._tiles):
            rest = len(self._tiles) - n
            steady = 0
            if rest >= _MANY and cycles > self._tiles[-1]:
                steady = self._steady(n, begin, pixels, cycles)
            n, begin = n + steady, begin + steady * cycles
            if not steady:
                count = min(rest, _MANY) if cycles > self._tiles[-1] else rest
                begin = self._swept(self._tiles[n : n + count], begin, pixels, cycles)
                n += count
        state.pixel, state.reload = begin + cycles, begin + latency.reload
        state.blocks.released.append(begin)
        result = begin + latency.result
        if self.bypass is not None:
            result = max(result, self.bypass.next() + latency.bypass)
        return result

    def _swept(self, tiles: Sequence[int], begin: int, pixels: int, cycles: int) -> int:
        """Sweep tiles after the one that began at ``begin``; returns when the last of them began."""
        latency, activity = self._latency, self._activity
        begins = self._weights.sweeps(tiles, begin, pitch=cycles, reload=latency.reload, ready=latency.tile)
        if begins[-1] == begin + len(tiles) * cycles:
            activity.add_even(BUSY, begin + cycles, pixels, pitch=cycles, count=len(tiles))
            return begins[-1]
        for each in begins:
            activity.add(WEIGHT, begin + cycles, each)
            activity.add(BUSY, each, each + pixels)
            begin = each
        return begin

    def _steady(self, n: int, begin: int, pixels: int, cycles: int) -> int:
        """Sweep tiles from ``n`` on that wait only for the pixels before them; returns their number.

        ``begin``: of the tile before them.
        """
        latency = self._latency
        room = cycles - latency.reload - latency.tile
        free = begin + latency.reload
        count = self._weights.steady(self._beats, n, free=free, pitch=cycles, room=room)
        if count:
            self._activity.add_even(BUSY, begin + cycles, pixels, pitch=cycles, count=count)
        return count
