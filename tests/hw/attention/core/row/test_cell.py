# amaranth: UnusedElaboratable=no
"""Whole rows, over all their streams, against the page: passes that overlap as closely as the timing allows.

The test is the rows' control: it lays out, cycle by cycle, what each stage is told, from the times of
`CoreTiming` alone, with random pauses wherever the real control may wait.
"""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from hw.attention.config import AttentionConfig
from hw.attention.core.result.cell import ResultRows
from hw.attention.core.row.cell import AttentionRows, row_cells
from hw.attention.core.row.maximum import LOGIT_TILES
from hw.attention.core.timing import CoreTiming
from tests.hw.attention import reference
from tests.support.gateware.streams import plain, set_all, simulate

BEAT_WIDTH = 64


class Rows(wiring.Component):
    """The cells of one or two rows: one for each stream, and their results."""

    def __init__(self, config, rows):
        self.streams = [AttentionRows(config, rows=rows) for _ in range(config.streams)]
        self.results = ResultRows(config, rows=rows, beat_width=BEAT_WIDTH)
        self.rows = rows
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.results = self.results
        for s, stream in enumerate(self.streams):
            m.submodules[f"stream_{s}"] = stream
            m.d.comb += [self.results.i[s][row].eq(stream.o[row]) for row in range(self.rows)]
        return m


class Pass:
    """One pass: queries, their settings, and a tile list for each stream; with the results to expect."""

    def __init__(self, rng, config, rows):
        self.qk_parts, self.v_parts = (int(n) for n in rng.integers(1, config.folds + 1, 2))
        elements = self.v_parts * config.lanes
        self.keys = int(rng.choice([1, 5, config.tile_keys, 3 * config.tile_keys + 2]))
        self.q = rng.integers(-128, 128, (rows, self.qk_parts * config.lanes))
        self.k = rng.integers(-128, 128, (self.keys, self.qk_parts * config.lanes))
        self.v = rng.integers(-128, 128, (self.keys, elements))
        self.cap = int(rng.choice([0, 2**17])) if config.logit_cap else 0
        self.settings = [self._settings(rng, config) for _ in range(rows)]
        if config.output == "int16":
            self.scale = {"fraction": int(rng.integers(0, 13))}
        else:
            shift = int(rng.integers(30, 37))
            self.scale = {"multiplier": int(rng.integers(2**16, 2**17)), "shift": shift}
        tiles = range(-(-self.keys // config.tile_keys))
        self.tiles = [list(tiles[s :: config.streams]) for s in range(config.streams)]

    def _settings(self, rng, config):
        own = {
            "first": int(rng.choice([0, 0, 3, config.tile_keys + 1])),
            "end": int(rng.choice([self.keys, self.keys // 2, 1, 0])),
            "multiplier": int(rng.integers(2**16, 2**17)),
            "shift": int(rng.integers(18, 26)),
        }
        if config.alibi:
            own["position"] = int(rng.integers(-5, self.keys))
            own["slope"] = int(rng.integers(0, 2**22))
        return own

    def results(self, config, lines, tanh_lines):
        """Return what each row comes to, as bits."""
        given = []
        for query, own in zip(self.q, self.settings, strict=True):
            logits = []
            for j, score in enumerate((self.k @ query).tolist()):
                t = reference.scaled(score, own["multiplier"], own["shift"])
                t = reference.capped(t, self.cap, tanh_lines) if self.cap else t
                if config.alibi:
                    t = reference.sloped(t, own["slope"], own["position"] - j)
                logits.append(t)
            streams = []
            for tiles in self.tiles:
                row = reference.Row(self.v.shape[1])
                for tile in tiles:
                    some = range(tile * config.tile_keys, min(self.keys, (tile + 1) * config.tile_keys))
                    visible = [own["first"] <= j < own["end"] for j in some]
                    values = self.v[some.start : some.stop].tolist()
                    row.merge(logits[some.start : some.stop], visible, values, config.probability_bits, lines)
                streams.append(row)
            output, total = reference.Row.combined(streams)
            form = config.output
            given.append(
                [reference.normalized(o, total, config.probability_bits, form, self.scale) for o in output]
            )
        return given


class Control:
    """What every stage is told in every cycle: ``at[cycle]`` is a list of (signal, value)."""

    def __init__(self, rng, config, unit, pauses):
        self.rng, self.config, self.unit, self.pauses = rng, config, unit, pauses
        self.timing = CoreTiming(config)
        self.at = defaultdict(list)
        self.drains = []  # (cycle in which the beat is on the port, pass, row, beat)
        self.drained = 0  # when the beats of all passes so far have left

    def pulse(self, cycle, signal, value):
        """Return a signal a value for a cycle; afterwards it is zero."""
        self.at[cycle].append((signal, value))
        self.at[cycle + 1].insert(0, (signal, 0))

    def word(self, cycle, signal, **members):
        """Return members of a control word, and take its ``valid`` back afterwards."""
        self.at[cycle].append((signal, {"valid": 1, **members}))
        self.at[cycle + 1].insert(0, (signal.valid, 0))

    def pause(self):
        return int(self.rng.integers(1, 6)) if self.rng.random() < self.pauses else 0

    def lay_out(self, passes):
        """Lay out all passes; the streams meet only where sums are combined."""
        streams = [StreamControl(self, stream) for stream in self.unit.streams]
        combined = []
        for n, job in enumerate(passes):
            steps = job.v_parts * self.config.part_steps
            for s, stream in enumerate(streams):
                stream.add(n, job, job.tiles[s], combined)
            start = max(stream.finals[n] for stream in streams)
            if len(streams) > 1:
                start += self.pause()
                if combined:
                    before, steps_before, _ = combined[-1]
                    start = max(start, before + max(steps_before, self.timing.interval))
                if n >= 2:  # the results' bank must be empty when the first lanes come
                    start = max(start, combined[n - 2][2] - self.timing.normalize)
            combined.append((start, steps, self._results(n, job, start, steps)))
        return max(cycle for cycle, *_ in self.drains) + 2

    def _results(self, n, job, start, steps):
        """Combine, divide, normalize and drain; give the cycle in which the results' bank is empty."""
        control, timing = self.unit.results.control, self.timing
        self.pulse(start, control.combine, 1)
        for stream in self.unit.streams:
            self.at[start].append((stream.control.sum_bank, n % 2))
            self.at[start + 1].insert(0, (stream.control.sum_bank, 1 - n % 2))
        self.word(start + timing.divide, control.divide, scale=job.scale)
        for step in range(steps):
            cycle = start + timing.normalize + step
            self.word(cycle, control.normalize, step=step, bank=n % 2, scale=job.scale)
            for stream in self.unit.streams:
                self.word(cycle, stream.control.final, step=step, bank=n % 2)
        cycle = max(self.drained, start + timing.drained - self.config.merge_steps + steps)
        beats = -(-job.v.shape[1] * self.config.result_bits // BEAT_WIDTH)
        for row, beat in product(range(self.unit.rows), range(beats)):
            self.word(cycle, control.drain, bank=n % 2, beat=beat)
            self.pulse(cycle, self.unit.results.drained, 1 << row)
            self.drains.append((cycle + 2, n, row, beat))  # through the cell's register, too
            cycle += 1 + self.pause()
        self.drained = cycle
        return cycle


class StreamControl:
    """The control of one stream's cell."""

    def __init__(self, control, cell):
        self.control, self.cell = control, cell
        self.config, self.timing = control.config, control.timing
        self.key = 100  # next free cycle of the key port
        self.picked = 0  # first pick of the pass before
        self.reads = []  # last read of each tile
        self.entry = 0  # of the logit buffer, where the tile begins
        self.read = 0  # next free cycle for a read
        self.merged = -100  # when the merge of the tile before could begin
        self.spacing = 0  # from there to that of the next
        self.finals = []

    def add(self, n, job, tiles, combined):
        """Lay out a pass over these tiles of the stream."""
        self._queries(n, job)
        tiles = tiles or [None]  # a tile of one key that nobody sees
        for tile in tiles:
            place = {"opens": tile == tiles[0], "closes": tile == tiles[-1]}
            ready = self._keys(n, job, tile, opens=place["opens"])
            self._values(n, job, tile, ready, combined, **place)

    def _queries(self, n, job):
        cell, rows = self.cell, len(job.settings)
        cycle = self.picked
        for row, part in product(range(rows), range(job.qk_parts)):
            self.control.pulse(cycle, cell.load, 1 << row)
            lanes = job.q[row, part * self.config.lanes : (part + 1) * self.config.lanes].tolist()
            self.control.at[cycle] += [
                (cell.query, lanes),
                (cell.control.place, {"bank": n % 2, "part": part}),
            ]
            if part == 0:
                late = cycle + self.timing.adopt + 1
                self.control.pulse(late, cell.configure, 1 << row)
                self.control.at[late].append((cell.control.settings, job.settings[row]))
            cycle += 1
        self.key = max(self.key, cycle + 1)

    def _keys(self, n, job, tile, *, opens):
        """Lay out the keys of a tile; give the cycle from which on its logits may be read."""
        control, at, timing = self.cell.control, self.control.at, self.timing
        some = self._some(job, tile)
        if len(self.reads) >= LOGIT_TILES:  # the slot must have been read
            self.key = max(self.key, self.reads[-LOGIT_TILES] + timing.read + 1 - timing.write)
        for index, j in enumerate(some):
            for part in range(job.qk_parts):
                cycle = self.key = self.key + self.control.pause()
                self.key += 1
                self.control.word(cycle - 1, control.pick, place={"bank": n % 2, "part": part})
                if opens and index == part == 0:
                    self.picked = cycle - 1
                    self.control.pulse(cycle + timing.adopt, control.adopt, 1)
                if j < job.keys:
                    lanes = job.k[j, part * self.config.lanes : (part + 1) * self.config.lanes]
                    at[cycle].append((self.cell.key, lanes.tolist()))
                self.control.pulse(cycle + timing.first, control.accumulate, 1)
                at[cycle + timing.first].append((control.first, part == 0))
            at[cycle + timing.scale].append((control.key, j))
            if self.config.logit_cap:
                at[cycle + timing.cap].append((control.cap, job.cap))
            place = {"first": index == 0, "last": index == len(some) - 1, "opens": opens}
            self.control.word(cycle + timing.write, control.write, **self._place(index), **place)
        return cycle + timing.ready

    def _values(self, n, job, tile, ready, combined, *, opens, closes):
        control, at, timing = self.cell.control, self.control.at, self.timing
        some = self._some(job, tile)
        steps = job.v_parts * self.config.part_steps
        self.read = max(self.read, ready)
        for index, j in enumerate(some):
            ends = index == len(some) - 1
            for part in range(job.v_parts):
                last = ends and part == job.v_parts - 1
                cycle = self.read + self.control.pause()
                if ends:
                    cycle = max(cycle, self.merged + timing.ends)
                    if closes and n >= 2:
                        start, _, drained = combined[n - 2]
                        if self.config.streams > 1:
                            # The bank of finals of two passes ago must have been read.
                            cycle = max(cycle, start + timing.normalize + 1 - timing.merge)
                        else:
                            # What follows cannot wait: the results' bank must be empty for it.
                            cycle = max(cycle, drained - timing.normalize - timing.final)
                self.read = cycle + 1
                place = {"first": index == 0, "last": last}
                self.control.word(cycle + timing.read, control.read, **self._place(index), **place)
                self.control.pulse(cycle + timing.exponent, control.exponent, 1)
                if j < job.keys:
                    lanes = job.v[j, part * self.config.lanes : (part + 1) * self.config.lanes]
                    at[cycle + timing.step].append((self.cell.value, lanes.tolist()))
                parts = {"part": part, "last_part": job.v_parts - 1}
                step = {"turn": job.v_parts > 1, "first": index == 0, "ends": ends, "last": last}
                at[cycle + timing.step].append((control.value, parts | step))
                at[cycle + timing.step + 1].insert(0, (control.value, parts))
        self.merged = max(cycle, self.merged + self.spacing)
        for step in range(steps):
            place = {"step": step, "opens": opens, "closes": closes, "bank": n % 2}
            self.control.word(self.merged + timing.merge + step, control.merge, **place)
        self.control.pulse(self.merged + timing.merge - 1, control.merge.begins, 1)
        self.reads.append(cycle)
        self.entry += len(some)
        self.spacing = max(steps, timing.interval if closes else 0)
        if closes:
            self.finals.append(self.merged + timing.final)

    def _place(self, index):
        entry = (self.entry + index) % self.config.logit_entries
        return {"slot": len(self.reads) % LOGIT_TILES, "entry": entry}

    def _some(self, job, tile):
        if tile is None:
            return [2**16 - 1]  # beyond every row's end
        return range(tile * self.config.tile_keys, min(job.keys, (tile + 1) * self.config.tile_keys))


CONFIGS = {
    "folds": {"folds": 3},
    "one": {"folds": 1, "merge_lanes": 1},
    "pack": {"probability_bits": 8, "exp_segments": 8, "streams": 2},
    "all": {"logit_cap": True, "alibi": True, "exp_segments": 32, "streams": 4},
    "cap": {"logit_cap": True, "output": "int8", "folds": 1, "probability_bits": 12},
    "alibi": {"alibi": True, "output": "bfloat16", "probability_bits": 20},
    "wide": {"lanes": 48, "merge_lanes": 4, "folds": 2, "output": "int8", "streams": 2},
    "eight": {"streams": 8, "folds": 1, "output": "bfloat16", "probability_bits": 8},
    "streams": {"streams": 16, "folds": 1, "output": "bfloat16", "probability_bits": 8},
}


#: In `make test` every shape but the largest once, and a row by itself where most is different.
QUICK = {(name, 2, 0) for name in CONFIGS if name != "streams"} | {("folds", 1, 1), ("alibi", 1, 1)}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "rows", "seed"),
    [
        pytest.param(*case, marks=[] if case in QUICK else [pytest.mark.soak])
        for case in product(CONFIGS, (1, 2), range(3))
    ],
)
def test_rows(name, rows, seed):
    shape = {"lanes": 16, "tile_keys": 16, "merge_lanes": 2, "cached_keys": 0, **CONFIGS[name]}
    config = AttentionConfig(rows=rows, **shape)
    rng = np.random.default_rng([seed, rows, *name.encode()])
    unit = Rows(config, rows)
    passes = [Pass(rng, config, rows) for _ in range(5)]
    for own in passes[1].settings:  # one pass at least has results other than zero
        own.update(first=0, end=passes[1].keys)
    # Half of the seeds are as dense as can be, so that everything overlaps.
    control = Control(rng, config, unit, pauses=0.0 if seed % 2 == 0 and rows == 2 else 0.15)
    cycles = control.lay_out(passes)
    beats = {cycle: place for cycle, *place in control.drains}
    seen = {}

    async def bench(ctx):
        for cycle in range(cycles):
            set_all(ctx, control.at[cycle])
            beat = int(plain(ctx.get(unit.results.o)))
            if cycle in beats:
                seen[tuple(beats[cycle])] = beat
            elif cycle:
                assert beat == 0
            await ctx.tick()

    simulate(unit, bench)
    segments = config.exp_segments
    lines = [reference.exp2_line(segment, segments) for segment in range(segments)]
    tanh_lines = [reference.tanh_line(segment) for segment in range(1024)] if config.logit_cap else None
    width, some = config.result_bits, set()
    for n, job in enumerate(passes):
        for row, expected in enumerate(job.results(config, lines, tanh_lines)):
            bits = sum(got << (at[2] * BEAT_WIDTH) for at, got in seen.items() if at[:2] == (n, row))
            got = [bits >> (width * d) & (2**width - 1) for d in range(len(expected))]
            assert got == expected, (n, row)
            some.update(got)
    assert len(some) > 1


def test_cells_of_odd_and_even_rows():
    assert row_cells(AttentionConfig(rows=1)) == [(0, 1)]
    assert row_cells(AttentionConfig(rows=4)) == [(0, 2), (2, 2)]
    assert row_cells(AttentionConfig(rows=5)) == [(0, 2), (2, 2), (4, 1)]
