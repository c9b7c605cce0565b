"""The cycles of a launch, computed from the order of work in each unit and the timing of memory.

Jobs are followed one after another; the state of units, buffers and ports is all that a job inherits.  Within
a job words move in pieces, up to the end of a row of the map or of a block of pixels. Gathered samples, and
conflicts between ports that share a channel, are not modelled.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hw.board import Board
from hw.conv.config import ConvConfig
from hw.conv.core.depthwise.loader import TapLoader
from hw.conv.driver.plan import PlannedJob
from hw.conv.driver.route import PointSide, TapSide
from hw.conv.driver.weights import packets, tile_beats
from hw.conv.model.flow import Departures, Queue, Source, WordSpan, delayed, paced
from hw.conv.model.latency import Latency
from hw.conv.model.maps import MapSource, Ports
from hw.conv.model.points import PointJob, PointState
from hw.conv.model.supply import OffsetQueue, OffsetSupply, Weights
from hw.conv.model.taps import TapJob
from hw.conv.model.waits import WEIGHT, CycleCounts
from hw.conv.movers import descriptor as d
from hw.conv.movers.map_writer import SLICES
from hw.lib.skid import Skid


@dataclass(frozen=True, kw_only=True)
class PredictedLaunch:
    """The predicted cycles of a launch."""

    #: Cycles by cause, under the names of the kernel's counters without their sum.
    counters: Mapping[str, int]
    log: tuple[int, ...]  #: For each job the cycle in which it is in memory, as the kernel logs it.


def predict_launch(
    config: ConvConfig, board: Board, jobs: Sequence[PlannedJob], *, first: bool = True
) -> PredictedLaunch:
    """Predict a launch whose jobs were planned for the ports of ``board``; ``first``: after a reset."""
    model = _LaunchModel(config, board, len(jobs), first=first)
    for job in jobs:
        model.add(job)
    cycles = model.written[-1] + model.latency.log
    return PredictedLaunch(
        counters=model.activity.counts(cycles), log=tuple(cycle - 1 for cycle in model.written)
    )


class _Delayed:
    """A source whose words arrive some cycles later."""

    def __init__(self, source: Source, cycles: int) -> None:
        self._source, self._cycles = source, cycles

    def offer(self, most: int) -> WordSpan:
        return delayed(self._source.offer(most), self._cycles)

    def accept(self, piece: WordSpan) -> None:
        self._source.accept(delayed(piece, -self._cycles))


class _LaunchModel:
    """The state of units, buffers and ports after the jobs so far; ``written``: the end of each job."""

    def __init__(self, config: ConvConfig, board: Board, jobs: int, *, first: bool) -> None:
        self._config, self._board, self._jobs = config, board, jobs
        self.latency = Latency(config, board)
        self.activity = CycleCounts()
        self.written: list[int] = []
        self._ports = Ports(config, board, first=first)
        self._weights = Weights(self._ports, self.latency)
        self._points = PointState()
        self._tap_free = 0
        self._tapped = Departures()
        self._taps_taken = [0, 0]  # commands of the depthwise unit
        self._taps_released = [0, 0]
        self._joined: list[int] = []  # descriptors
        self._accepted = 0
        self._ends = [0, 0, 0]  # last words of results
        self._bypass: MapSource | None = None  # of the current job
        # Queues between units: at both ends of the route, and at the unit after or before.
        self._behind_tap = Queue(Skid.CAPACITY)
        self._behind_point = Queue(2 * Skid.CAPACITY)
        self._before_tap = Queue((2 if config.dot_words else 1) * Skid.CAPACITY)
        self._before_point = Queue(Skid.CAPACITY)
        self._writer = Queue(2 * Skid.CAPACITY + SLICES)
        self._out = 0
        self._offsets = OffsetQueue(config, self.latency)
        self._offsets_left: list[int] = []  # the side port's last word of each job's offsets

    def add(self, job: PlannedJob) -> None:
        """Follow a job until it is in memory."""
        fields, latency = job.fields, self.latency
        descriptor = self._descriptor()
        self._weights.ask(descriptor)
        tap = job.route.tap
        accepted = max(descriptor + latency.commands, self._ends[-3] + 1)
        if tap is not None:
            accepted = max(accepted, self._taps_taken[-2])
        if fields["flags"] & d.AFTER and self.written:
            accepted = max(accepted, self.written[-1] + latency.after)
        self._accepted = accepted
        self._bypass = None
        tap_job = None if tap is None else self._tap(job, tap, accepted)
        point_job = None if job.route.point is None else self._point(job, job.route.point, accepted)
        last: Source
        if tap_job is not None and (job.route.tap_first or point_job is None):
            tap_job.source = self._map(fields, tap_job.token, latency.into_taps)
            last = self._behind_tap.of(tap_job)
            if point_job is not None:
                point_job.fill.source = self._before_point.of(_Delayed(last, latency.into_points))
                last = self._behind_point.of(point_job)
        else:
            assert point_job is not None
            point_job.fill.source = self._map(fields, point_job.fill.token, latency.into_points)
            last = self._behind_point.of(point_job)
            if tap_job is not None:
                tap_job.source = self._before_tap.of(_Delayed(last, latency.into_taps))
                last = self._behind_tap.of(tap_job)
        self._write(fields, last)
        if tap_job is not None and fields["flags"] & d.DOT:
            arrived = tap_job.map_end + latency.dot
            entries = fields["offset_total_entries"]
            self._offsets.compute(entries, arrived, tap_job.first, tap_job.last)
        self._offsets_left.append(self._offsets.arrived + latency.offset_left)
        if tap_job is not None:
            self._tap_free = tap_job.free
            if fields["flags"] & d.DOT or not job.route.samples:
                self._taps_released.append(tap_job.free - 1)

    def _descriptor(self) -> int:
        """Return when the next job's descriptor has arrived."""
        latency, number = self.latency, len(self._joined)
        asked = latency.descriptor_start + number
        if number > 1:
            asked = max(asked, self._joined[-2])
        words = latency.descriptor_words
        # The offsets of the job three before were requested earlier.
        left = self._offsets_left[-3] if number > 2 else 0
        joined = max(asked + latency.descriptor, left, self._accepted) + words
        self._joined.append(joined)
        return joined

    def _side(self) -> int:
        """Return when the next descriptor but one, requested with the current one, has arrived."""
        number = len(self._joined)
        if number + 1 >= self._jobs:
            return 0
        return self._joined[-1] + self.latency.descriptor + self.latency.descriptor_words

    def _map(self, fields: Mapping[str, int], token: Callable[[int], int | None], into: int) -> MapSource:
        source = MapSource(self._config, self._ports, self.latency, fields, side="in", token=token, into=into)
        if self._bypass is not None:
            source.beside, self._bypass.beside = self._bypass, source
        return source

    def _tap(self, job: PlannedJob, side: TapSide, accepted: int) -> TapJob:
        config, fields = self._config, job.fields
        taken = max(accepted + 1, self._tap_free)
        self._taps_taken.append(taken)
        loaded = 0
        free = self._taps_released[-2] + 1
        for _, records in packets(config, side.layer, side.buffer):
            loaded = free = self._weights.packet(records, free=free) + TapLoader.LATENCY
        steps = fields["steps"] * (1 if job.route.samples else config.taps)
        offsets = None
        if fields["flags"] & (d.FREE | d.SQUARE) and not fields["flags"] & d.DOT:
            offsets = OffsetSupply(
                self._ports,
                self.latency,
                fields,
                self._offsets,
                issued=accepted,
                free=self._side(),
                taps=steps,
            )
        self.activity.add(WEIGHT, taken + 1, loaded)
        return TapJob(
            self.latency,
            self.activity,
            fields,
            taken=taken,
            loaded=loaded,
            tables=max(steps, fields["words"] * config.generators),
            offsets=offsets,
            passed=self._tapped,
        )

    def _point(self, job: PlannedJob, side: PointSide, accepted: int) -> PointJob:
        config, fields, route = self._config, job.fields, job.route
        reverse = route.tap is not None and not route.tap_first
        beats = {
            first: tile_beats(config, 8 * self._ports.width_bytes, first=first) for first in (False, True)
        }
        found = PointJob(
            config,
            self.latency,
            self.activity,
            self._points,
            self._weights,
            fields,
            issued=accepted,
            words=fields["middle_total_words" if reverse else "out_total_words"],
            tiles=[beats[tile.first] for tile in side.tiles],
            bypass=route.rearrangement.shuffle,
        )
        if found.bypass is not None:
            self._bypass = MapSource(
                config,
                self._ports,
                self.latency,
                fields,
                side="bypass",
                token=found.bypass.token,
                into=self.latency.bypass_cut,
            )
            found.bypass.source = Queue(config.bypass_words).of(self._bypass)
        return found

    def _write(self, fields: Mapping[str, int], last: Source) -> None:
        """Take all results, and follow the last ones to memory."""
        latency, left, free = self.latency, fields["out_total_words"], self._out
        results = self._writer.of(_Delayed(last, latency.out))
        pace = self._write_pace(fields)
        while left:
            piece = paced(results.offer(left), free, pace=pace)
            results.accept(piece)
            free, left = piece.last + 1, left - piece.words
        self._out = free + math.ceil(pace) - 1
        self._ends.append(free - 1)
        most = max(fields[f"out_bytes_{port}"] for port in range(self._config.ports))
        beats = -(-most // self._ports.width_bytes)
        burst = (beats - 1) % self._board.memory.burst_beats
        sent = free - 1 + latency.write + math.ceil(burst * self._ports.beat)
        done = sent + latency.written
        # Jobs end in order: a later job's response comes after all earlier ones, at any port.
        self.written.append(max(done, self.written[-1] + 1) if self.written else done)

    def _write_pace(self, fields: Mapping[str, int]) -> float:
        """Return the cycles of a word of results: a port's slice of it may be several beats wide.

        A pixel begins a new beat.
        """
        words = fields["out_map_words"]
        width = self._ports.width_bytes
        part = self._config.lanes // self._config.ports
        slowest = 1.0
        for port in range(self._config.ports):
            slices = -(-fields[f"out_units_{port}"] // part)
            beats = -(-fields[f"out_units_{port}"] // width)
            slowest = max(slowest, (words - slices + max(slices, beats)) / words)
        return slowest
