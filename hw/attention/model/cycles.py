"""Cycles of the core: its schedule, tile by tile.

Only a few places of the core can stall, with fixed times between them.  Its schedule is a list of conditions:

* queries load once the pass before has begun in all streams, unless their pass is empty,
* a key waits for its queries and for its entry of the logit buffer,
* a value waits until its tile is complete,
* the end of a tile waits for the merge of the tile before to begin, and for room for results,
* a merge waits for the one before to end,
* a combination of streams waits for the start of their last merges, the divider and a bank of results.

`core_cycles` follows these exactly; `hw.attention.model.launch` adds the start and the pace of the streams.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

from hw.attention.config import RESULT_BANKS, AttentionConfig
from hw.attention.core.command import UNIT_ELEMENTS
from hw.attention.core.drain import PASSES_AHEAD, Drain
from hw.attention.core.timing import CoreTiming
from hw.attention.core.value_side import FINAL_BANKS, banks_behind
from hw.attention.driver.shapes import PassShape
from hw.attention.model.phase import PhaseTiming
from hw.attention.model.shared import split_shared
from hw.attention.model.stream import CycleBreakdown, StreamSchedule, TileRun, uncached_runs
from hw.attention.model.supply import IssueTimes, ResultChannel, Supply, SupplySchedule


class CoreSchedule:
    """The core's schedule, pass after pass.

    Cycle 0 is the first with a command.  ``queries``, ``keys``, ``values``: the supplies of parts.
    ``channel``: of queries and results; None for one that never stalls.
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
        # Streams share a schedule as long as their tiles are alike.
        stream = StreamSchedule(config, self._phase, keys=keys, values=values)
        self._streams = [stream] * self._phase.sides
        self.loaded = -1  #: Cycle in which the last part of the queries of the last pass was loaded.
        self._adopted = 0  # the rows adopted the last pass's queries
        self._waits_from = sys.maxsize  # issue of the first empty pass of the run at hand
        # Of the last passes: when their results had left; of those with tiles; and when their streams' sums
        # could be overwritten.
        self._left: list[int] = []
        self._drained: list[int] = []
        self._read: list[int] = []
        self._combined = -sys.maxsize, 0  # the last pass's combination, and its steps
        #: Cycle of the last beat of results, or of its transfer by a channel that stalls.
        self.last_output = 0
        #: Cycles of all passes up to the last part of the last key of any stream.
        self.cycles = CycleBreakdown()

    def add(
        self,
        shape: PassShape,
        runs: Sequence[Sequence[TileRun]] | None = None,
        *,
        issue: IssueTimes | None = None,
        query_beats: float = 0.0,
    ) -> None:
        """Schedule one pass.

        ``runs``: tiles of each stream; None if all come from memory. ``issue``: None for cycle 0.
        ``query_beats``: beats of its queries in the channel.
        """
        issue = issue or IssueTimes()
        config, timing, phase = self._config, self._timing, self._phase
        parts = shape.rows * shape.key_parts
        earliest = issue.queries + issue.query_delay
        supplied = self._queries.ask(parts, earliest=earliest, least=issue.query_cycles)
        begins = max(self.loaded, self._left[0] + 1 if len(self._left) == PASSES_AHEAD else -1) + 1
        if not shape.empty:
            begins = max(begins, self._adopted)
        self.loaded = max(begins + parts - 1, supplied[1] if supplied else 0, issue.empty)
        self._queries.take(self.loaded)
        self._channel.read(query_beats, first=self.loaded - parts)
        if shape.empty:
            self._drain(shape, self.loaded + Drain.EMPTY_LATENCY, issue)
            self._waits_from = min(self._waits_from, issue.queries)
            return
        issue = replace(issue, queries=min(issue.queries, self._waits_from))
        self._waits_from = sys.maxsize
        banks = self._drained if config.streams == 1 else self._read
        behind = banks_behind(config)
        bank = banks[-behind] + 1 if len(banks) >= behind else 0
        before = [stream.ended for stream in self._streams]
        ended = max(before)
        own = [
            tuple(runs[n] if runs else uncached_runs(config, shape.keys[n], shape.leads[n]))
            for n in range(phase.sides)
        ]
        split_shared(self._streams, own, StreamSchedule.copy)
        for stream, tiles in {id(s): (s, of) for s, of in zip(self._streams, own, strict=True)}.values():
            stream.add(shape, tiles, loaded=self.loaded, bank=bank, issue=issue)
        self._adopted = max(stream.taken for stream in self._streams) + phase.behind

        # The stream that ends last accounts for the cycles since the pass before ended in all streams.
        slowest = max(range(phase.sides), key=lambda n: self._streams[n].ended)
        cycles = self._streams[slowest].cycles.without_first(ended - before[slowest])
        self.cycles = self.cycles.plus(cycles)

        begins = max(stream.closed for stream in self._streams) + timing.final
        steps = shape.value_units * UNIT_ELEMENTS // config.merge_lanes
        if config.streams > 1:
            free = self._drained[-RESULT_BANKS] + 1 if len(self._drained) >= RESULT_BANKS else 0
            combined, its_steps = self._combined
            begins = phase.combines(max(begins, free), before=combined, steps=its_steps)
            self._combined = begins, steps
            self._read = [*self._read[1 - FINAL_BANKS :], begins + phase.read(steps)]
        drained = self._drain(shape, begins + phase.drained(steps), issue)
        self._drained = [*self._drained[1 - RESULT_BANKS :], drained]

    def _drain(self, shape: PassShape, complete: int, issue: IssueTimes) -> int:
        """Drain the results of a pass; return when the last one has left the rows."""
        start = max(complete, self._left[-1] + 1 if self._left else 0)
        beats = -(-shape.value_units * UNIT_ELEMENTS * self._config.result_bits // self._beat_width)
        drained, sent = self._channel.write(shape.rows * beats, first=start, least=issue.result_cycles)
        self._left = [*self._left[1 - PASSES_AHEAD :], drained]
        self.last_output = sent + Drain.LATENCY
        return drained
