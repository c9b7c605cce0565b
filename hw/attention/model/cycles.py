"""How many cycles the core takes, computed: its schedule, tile by tile.

In the core only a few places may wait, with fixed times between them, so its schedule is a short list of
"not before": queries not before the pass before has begun in all streams, unless their pass is empty; a key
not before its queries, not before its entry of the logit buffer is free; a value not before its tile is
complete; the end of a tile not before the merge of the tile before has begun, nor before there is room for
results; a merge not before the one before is done; a division not before all streams have closed the pass.
`core_cycles` follows these exactly; `hw.attention.model.predict` adds when the streams begin and how fast
they can come.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hw.attention.config import RESULT_BANKS, AttentionConfig
from hw.attention.core.command import UNIT_ELEMENTS
from hw.attention.core.drain import PASSES_AHEAD, Drain
from hw.attention.core.timing import CoreTiming
from hw.attention.core.value_side import FINAL_BANKS, banks_behind
from hw.attention.driver.shapes import PassShape
from hw.attention.model.phase import PhaseTiming
from hw.attention.model.stream import CycleBreakdown, StreamSchedule, TileRun, uncached_runs
from hw.attention.model.supply import IssueTimes, ResultChannel, Supply, SupplySchedule


class CoreSchedule:
    """The core's schedule, pass after pass.

    ``queries``, ``keys``, ``values``: what the streams of parts give at most.  Cycle 0 is the first in which
    the core has a command. ``channel``: what queries and results go through; None for one that is never
    behind.
    """

    def __init__(
        self,
        config: AttentionConfig,
        *,
        beat_width: int,
        queries: Supply,
        keys: Supply,
        values: Supply,
        channel: ResultChannel | None = None,
        decode: bool = False,
    ) -> None:
        self._config, self._phase = config, PhaseTiming(config, decode=decode)
        self._channel = channel or ResultChannel()
        self._timing = CoreTiming(config)
        self._beat_width = beat_width
        self._queries = SupplySchedule(queries)
        self._streams = [
            StreamSchedule(config, self._phase, keys=keys, values=values) for _ in range(self._phase.sides)
        ]
        self.loaded = -1  #: Cycle in which the last part of the queries of the last pass was loaded.
        self._adopted = 0  # when the rows had the last pass's queries
        self._waits_from = sys.maxsize  # since when queries of empty passes have waited
        # Of the last passes: when their results had left; and of those with tiles, and when their streams'
        # sums were needed no more.
        self._left: list[int] = []
        self._drained: list[int] = []
        self._read: list[int] = []
        self._combined = -sys.maxsize, 0  # when the last pass was, and its steps
        #: Cycle in which the last beat of results is transferred, or sent by a channel that is behind.
        self.last_output = 0
        self.waits = (
            CycleBreakdown()
        )  #: Cycles of all passes up to the last part of the last key of any stream.

    def add(
        self,
        shape: PassShape,
        runs: Sequence[Sequence[TileRun]] | None = None,
        *,
        known: IssueTimes | None = None,
        query_beats: float = 0.0,
    ) -> None:
        """Schedule one pass.

        ``runs``: tiles of each stream; None if all come from memory. ``known``: when what it needs is known;
        None for as early as anyone asks. ``query_beats``: beats that its queries take of the channel.
        """
        known = known or IssueTimes()
        config, timing, phase = self._config, self._timing, self._phase
        parts = shape.rows * shape.key_parts
        coming = self._queries.ask(parts, known=known.queries + known.later, least=known.query_cycles)
        begins = max(self.loaded, self._left[0] + 1 if len(self._left) == PASSES_AHEAD else -1) + 1
        if not shape.empty:
            begins = max(begins, self._adopted)
        self.loaded = max(begins + parts - 1, coming[1] if coming else 0, known.empty)
        self._queries.take(self.loaded)
        self._channel.read(query_beats, first=self.loaded - parts)
        if shape.empty:
            self._drain(shape, self.loaded + Drain.EMPTY_LATENCY, known)
            self._waits_from = min(self._waits_from, known.queries)
            return
        known = replace(known, queries=min(known.queries, self._waits_from))
        self._waits_from = sys.maxsize
        banks = self._drained if config.streams == 1 else self._read
        behind = banks_behind(config)
        bank = banks[-behind] + 1 if len(banks) >= behind else 0
        ended = max(stream.ended for stream in self._streams)
        before = [stream.ended for stream in self._streams]
        for n, stream in enumerate(self._streams):
            own = runs[n] if runs else uncached_runs(config, shape.keys[n], shape.leads[n])
            stream.add(shape, own, loaded=self.loaded, bank=bank, known=known)
        self._adopted = max(stream.taken for stream in self._streams) + phase.behind

        # The stream that ends last says where the cycles went since the pass before had ended in all.
        slowest = max(range(phase.sides), key=lambda n: self._streams[n].ended)
        waits = self._streams[slowest].waits.without_first(ended - before[slowest])
        self.waits = self.waits.plus(waits)

        begins = max(stream.closed for stream in self._streams) + timing.final
        steps = shape.value_units * UNIT_ELEMENTS // config.merge_lanes
        if config.streams > 1:
            free = self._drained[-RESULT_BANKS] + 1 if len(self._drained) >= RESULT_BANKS else 0
            combined, its_steps = self._combined
            begins = phase.combines(max(begins, free), before=combined, steps=its_steps)
            self._combined = begins, steps
            self._read = [*self._read[1 - FINAL_BANKS :], begins + phase.read(steps)]
        drained = self._drain(shape, begins + phase.drained(steps), known)
        self._drained = [*self._drained[1 - RESULT_BANKS :], drained]

    def _drain(self, shape: PassShape, complete: int, known: IssueTimes) -> int:
        """Let the results of a pass leave; give when the last one has left the rows."""
        start = max(complete, self._left[-1] + 1 if self._left else 0)
        beats = -(-shape.value_units * UNIT_ELEMENTS * self._config.result_bits // self._beat_width)
        drained, sent = self._channel.write(shape.rows * beats, first=start, least=known.result_cycles)
        self._left = [*self._left[1 - PASSES_AHEAD :], drained]
        self.last_output = sent + Drain.LATENCY
        return drained


def core_cycles(
    config: AttentionConfig, passes: Iterable[PassShape], *, beat_width: int = 256, decode: bool = False
) -> int:
    """Return the cycles of the core alone, exactly, when no stream ever makes it wait.

    ``passes``: see `hw.attention.driver.shapes.pass_shapes`. ``decode``: whether the passes are those of jobs
    that decode.

    Returns
    -------
    int
        From the first cycle with a command to the transfer of the last beat of results, both included.
    """
    stream = Supply()
    schedule = CoreSchedule(
        config, beat_width=beat_width, queries=stream, keys=stream, values=stream, decode=decode
    )
    for shape in passes:
        schedule.add(shape)
    return schedule.last_output + 1
