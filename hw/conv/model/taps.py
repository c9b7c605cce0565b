"""The timing of the depthwise unit: rows of the map in, rows of results out."""

from collections.abc import Mapping

from hw.conv.core.depthwise.depthwise import RESULTS_AHEAD
from hw.conv.core.depthwise.strip_walker import StripWalker
from hw.conv.model.flow import Departures, Source, WordSpan, delayed, paced
from hw.conv.model.latency import Latency
from hw.conv.model.supply import OffsetSupply
from hw.conv.model.waits import BUSY, INPUT, OUTPUT, CycleCounts
from hw.conv.movers import descriptor as d


class TapJob:
    """A layer that samples; its results, or its samples, in order.

    Its command is ``taken`` in that cycle, its weights are ``loaded``, and its ``tables`` of so many entries
    are filled first.  Without offsets, or where they are computed, ``offsets`` is None.  The departures of
    all layers' results are in ``passed``: the queue may still hold some of the previous layer.
    """

    def __init__(
        self,
        latency: Latency,
        activity: CycleCounts,
        fields: Mapping[str, int],
        *,
        taken: int,
        loaded: int,
        tables: int,
        offsets: OffsetSupply | None,
        passed: Departures,
    ) -> None:
        self._latency, self._activity, self._fields, self._offsets = latency, activity, fields, offsets
        self.source: Source  #: Of the map; must be set first.
        self._strip = bool(fields["flags"] & d.STRIP)
        samples = bool(fields["flags"] & d.SAMPLES)
        self._pace = fields["offset_passes"] if fields["flags"] & d.DOT else 1
        self._steps = 1 if samples or self._strip else fields["steps"]
        pixel = fields["words"] * (fields["steps"] * fields["digits"] if samples else 1)
        self._pixel, self._row_words = pixel, fields["out_columns"] * pixel
        self._start = taken + 1
        self._prepared = max(self._start + tables + latency.tables, loaded + latency.loaded)
        self._dot_loaded = loaded + latency.loaded if fields["flags"] & d.DOT else 0
        if self._strip:
            self._prepared = max(self._prepared, self._start + StripWalker.START_LATENCY)
        self._filled: list[int] = []  # last words of rows
        self._begins: list[int] = []  # of rows of results
        self._word, self._base, self._ended = 0, 0, self._start
        self._known = 0  # words of the row whose offsets have arrived
        self._passed = passed
        self._behind = passed.at(passed.words - 1) + 1
        #: The earliest begin of the next layer, known after all results were taken. ``map_end``, ``first``,
        #: ``last``: cycles of the last word of the map, and of the first and last sampled pixel; known then,
        #: too.
        self.free = self.map_end = self.first = self.last = 0

    def token(self, row: int) -> int | None:
        """Return when a row of the map has room; None if that is not known."""
        latency, freed = self._latency, self._freed(row)
        if freed is None:
            return None
        return max(self._start + latency.fill_token + row * latency.fill_token_interval, freed)

    def offer(self, most: int) -> WordSpan:
        """Return words of the current row of results."""
        if not self._word:
            self._begin()
        words = min(most, self._row_words - self._word)
        start = self._step(self._word)
        if self._offsets is not None:
            if self._word == self._known:
                ready = self._offsets.pixel()
                if ready > start:
                    self._activity.add(INPUT, start, ready)
                    self._base += ready - start
                    start = ready
                self._known += self._pixel
            words = min(words, self._known - self._word)
        room = self._room(self._passed.words)
        if room > start:
            self._activity.add(OUTPUT, start, room)
            self._base += room - start
        first = self._step(self._word) + self._steps - 1
        last = self._step(self._word + words - 1) + self._steps - 1
        result = self._latency.tap_result
        return paced(WordSpan(words, first + result, last + result), self._behind)

    def accept(self, piece: WordSpan) -> None:
        """Accept them; later words are delayed by as much as these waited."""
        latency, fields = self._latency, self._fields
        begins, last = self._step(self._word), self._step(self._word + piece.words - 1)
        self._passed.add(piece)
        delay = max(0, self._room(self._passed.words - 1) - last)
        ended = last + self._steps
        start = begins if self._word else self._base
        self._activity.add(BUSY, start + latency.works, ended + latency.works)
        self._activity.add(OUTPUT, ended, ended + delay)
        self._base += delay
        self._word += piece.words
        if self._offsets is not None and self._word == self._known:
            self._offsets.sampled(ended + delay - 1)
        if self._word == self._row_words:
            self._word, self._known, self._ended = 0, 0, ended + delay - 1
            if len(self._begins) == fields["out_rows"]:
                self._end()

    def _room(self, word: int) -> int:
        """Return when the result of a word, counted over all rows, has a place."""
        return self._passed.at(word - RESULTS_AHEAD) + 1

    def _step(self, word: int) -> int:
        """Return the first step of a word of the current row."""
        if not self._strip:
            return self._base + word * self._steps
        fields = self._fields
        column, word = divmod(word, self._pixel)
        first = 2 * fields["dilation_columns"] - fields["pad_columns"]
        return self._base + (first + column * fields["stride_columns"]) * self._pixel + word

    def _begin(self) -> None:
        fields, latency, row = self._fields, self._latency, len(self._begins)
        need = min(fields["rows"], fields["first_need"] + row * fields["stride_rows"])
        self._fill(need)
        begin = max(self._prepared, self._ended + 1)
        if need > 0:
            begin = max(begin, self._filled[need - 1] + latency.filled + latency.gate)
        if row:
            pause = latency.rows
            if self._strip:
                pause = max(
                    pause, StripWalker.PLACE_INTERVAL * fields["stride_rows"] + StripWalker.PLACE_LATENCY
                )
            begin = max(begin, self._begins[-1] + pause)
        self._begins.append(begin)
        self._base = begin + latency.row
        self._activity.add(INPUT, self._ended + 1, self._base)

    def _freed(self, row: int) -> int | None:
        """Return when the row of results begins that frees the slot of a row of the map; None if
        not known.
        """
        fields = self._fields
        gone = row - fields["slots"] + 1  # rows that must be free
        if gone <= 0:
            return 0
        by = -(-(gone - fields["first_free"]) // fields["stride_rows"])
        return self._begins[by] + self._latency.freed if by < len(self._begins) else None

    def _fill(self, rows: int) -> None:
        fields, latency = self._fields, self._latency
        while len(self._filled) < rows:
            row = len(self._filled)
            freed = self._freed(row)
            assert freed is not None
            free = max(self._start + latency.fill_start, freed, self._dot_loaded)
            late = self._pace - 1  # a word enters in the last of its cycles
            free += late
            if row:
                free = max(free, self._filled[-1] + max(latency.fill_gap + 1, self._pace))
            left = fields["columns"] * fields["words"]
            while left:
                piece = paced(delayed(self.source.offer(left), late), free, pace=self._pace)
                self.source.accept(delayed(piece, -late))
                free, left = piece.last + self._pace, left - piece.words
            self._filled.append(free - self._pace)

    def _end(self) -> None:
        self._fill(self._fields["rows"])
        done = max(self._ended, self._filled[-1] + self._latency.filled)
        self.free = done + self._latency.drained
        self.map_end, self.first, self.last = self._filled[-1], self._begins[0], self._ended
