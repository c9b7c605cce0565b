"""Launches: what lies in memory behind each port, what the core must be given, and what must come of it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.movers.ports import PortBytes, key_port, port_count, query_port, result_port, value_port
from hw.attention.walk.descriptor import USED_BYTES, pack_descriptor
from sim.golden.attention import formats
from tests.hw.attention.core.feeds import CoreJob
from tests.hw.attention.plain import (
    PlainCache,
    PlainJob,
    bitmap_rows,
    is_empty,
    kept,
    key_bytes,
    page_entries,
    parts,
    passes,
    port_rows,
    port_units,
    query_units,
    slots,
    tiles,
)
from tests.hw.attention.reference import rounded

#: Where the K/V ports' arrays begin, in each port at another place, and the descriptors.
K_BASE, V_BASE, O_BASE, JOBS = 0x7_0000_0000, 0x9_0000_0000, 0x2_0000_0000, 0x5_0000_00C0
Q_BASE = 0x3_0000_0000


@dataclass
class Launch:
    """Jobs of one launch: memory's content, and all that must come of it.

    What is read and written lies at multiples of ``grain`` bytes.  Results are those of the golden model if
    ``golden``, else noise that the core would have to send.
    """

    config: AttentionConfig
    jobs: list[PlainJob]
    seed: int
    width: int
    grain: int = 1
    golden: bool = False
    commands: list = field(default_factory=list)
    empty: list = field(default_factory=list)
    keeps: list = field(default_factory=list)  # of the tiles of jobs that decode
    rows: list = field(default_factory=list)
    queries: list = field(default_factory=list)

    def __post_init__(self):
        config, streams = self.config, self.config.streams
        self.rng = random.Random(self.seed)
        self.tiles, self.keys, self.values = ([[] for _ in range(streams)] for _ in range(3))
        self.read = [0] * port_count(config)
        self.own = {"key": [], "value": []}  # parts of all ports, of jobs that decode
        self.marks = {"key": [], "value": []}  # whether each is the last of its pass, and is kept
        self.written, self.phases = [], []  # bytes after each pass; whether it decodes
        self.memory = [{} for _ in range(port_count(config))]
        self.base = [
            {"k": K_BASE, "v": V_BASE}[side] + self.rng.randrange(1 << 20) * self.grain
            for side in "kv"
            for _ in range(config.streams * config.ports)
        ]
        self.beats = []  # by pass
        self.results = [{} for _ in range(config.result_ports)]  # bytes, None for any, by address
        self.result_base = [O_BASE + self.rng.randrange(1 << 20) * self.grain for _ in self.results]
        self.query_base = [
            Q_BASE + self.rng.randrange(1 << 20) * self.grain for _ in range(config.query_port_count)
        ]
        self.saturated = Counter()  # logits and results, if `golden`
        self.needed = []  # what a pass and all before it need before the pass has results
        self._caches = [PlainCache() for _ in range(streams)]
        self._next, self._end = 0x1_0000_0000 + self.rng.randrange(64), 0
        for job in self.jobs:
            self._tensors(job)
        for job in self.jobs:
            if self.golden and not job.empty:
                job.golden = self._golden(job)
            for this in passes(config, job):
                self._pass(this)
        descriptors = b"".join(pack_descriptor(job.descriptor()) for job in self.jobs[1:])
        self._fill(0, JOBS, descriptors)
        self.read[0] += USED_BYTES * len(self.jobs[1:])

    def address(self, side, stream, port):
        """Return the base address of a port of keys or values."""
        ports = self.config.ports
        return self.base[("kv".index(side) * self.config.streams + stream) * ports + port]

    def _fill(self, port, address, content):
        self.memory[port].update(enumerate(content, address))

    def _place(self, content):
        """Put something behind port 0, at any address."""
        address = -(-self._next // self.grain) * self.grain
        self._fill(0, address, content)
        self._next = address + len(content) + self.rng.randrange(1, 200)
        return address

    def _tensors(self, job):
        config, rng = self.config, self.rng
        job.q = rng.randbytes(job.heads * job.queries * job.dqk)
        if job.bits is not None:
            job.address["bitmap"] = self._place(bitmap_rows(job))
        if job.slope is not None:
            job.address["slopes"] = self._place(b"".join(slope.to_bytes(4, "little") for slope in job.slope))
        first = job is self.jobs[0]
        # Behind all queries before it: more than all of them take.
        job.address["q_offset"] = (
            0 if first else (self.jobs.index(job) << 20) + rng.randrange(999) * self.grain
        )
        for at in range(0, len(job.q), job.dqk):
            self._query(job, at // job.dqk, job.q[at : at + job.dqk])
        # Behind all results before it: more than all of them take.
        job.address["o_offset"] = (
            0 if first else (self.jobs.index(job) << 20) + rng.randrange(999) * self.grain
        )
        for name in ("k_offset", "v_offset"):
            # Behind all tensors before it: nothing lies in two places.
            job.address[name] = 0 if first else self._end + rng.randrange(1 << 18) * self.grain
        if job.reuse_kv:
            before = self.jobs[self.jobs.index(job) - 1]
            job.address |= {name: before.address[name] for name in ("k_offset", "v_offset")}
            job.content, job.places = before.content, before.places
            self._table(job)
            return
        count = -(-job.keys // job.page_keys) if job.page_keys else 1
        job.content, job.places = {}, {}
        for side, number in (("k", key_port), ("v", value_port)):
            size = self._page_bytes(job, side)
            # Where each page begins, in any order and with room between them; all keys are one where there
            # are none.
            step = -(-max(size, 16) // self.grain) * self.grain
            places = [step * n for n in rng.sample(range(2 * count), count)] if job.page_keys else [0]
            job.places[side] = places
            for s in range(config.streams):
                for p in range(config.ports):
                    start = self.address(side, s, p) + job.address[f"{side}_offset"]
                    width = {"k": job.dqk, "v": job.dv}[side]
                    pad = bytes(key_bytes(config, width) - width)
                    rows = size // (width + len(pad))
                    content = [
                        rng.randbytes(size)
                        if not pad
                        else b"".join(rng.randbytes(width) + pad for _ in range(rows))
                        for _ in places
                    ]
                    for place, page in zip(places, content, strict=True):
                        self._fill(number(config, s, p), start + place, page)
                    job.content[side, s, p] = content
                    end = start - self.address(side, s, p) + max(places) + size
                    self._end = max(self._end, -(-end // self.grain) * self.grain)
        self._table(job)

    def _page_bytes(self, job, side):
        """Bytes of all heads in a port, of a page or of all keys."""
        heads = 0 if job.empty else job.heads // job.kv_group
        size = key_bytes(self.config, {"k": job.dqk, "v": job.dv}[side])
        return heads * port_rows(self.config, job.page_keys or job.keys) * size

    def _table(self, job):
        """Put the page table behind port 0, if there is one."""
        if job.page_keys:
            pairs = zip(job.places["k"], job.places["v"], strict=True)
            table = b"".join((place // 16).to_bytes(4, "little") for pair in pairs for place in pair)
            job.address["pages"] = self._place(table.ljust(-(-len(table) // 32) * 32, b"\x5a"))

    def _query(self, job, row, query):
        """Put a query in memory, units of it in turn at each port; zeros where it has none."""
        config, units = self.config, query_units(self.config, job.dqk)
        if config.decodes:
            padded = query.ljust(16 * units, b"\0")
            for n, (port, place) in enumerate(self._query_parts(job, row)):
                part = padded[n * config.lanes : (n + 1) * config.lanes]
                self._fill(query_port(config, port), self.query_base[port] + place, part)
            return
        for port, base in enumerate(self.query_base):
            content = b"".join(
                query[at : at + 16] for at in range(16 * port, job.dqk, 16 * config.query_port_count)
            )
            start = base + job.address["q_offset"] + 16 * row * units
            self._fill(query_port(config, port), start, content.ljust(16 * units, b"\0"))

    def _query_parts(self, job, row):
        """Return the port of each part of a query where whole parts take turns, and its place there."""
        lanes, size = self.config.lanes, key_bytes(self.config, job.dqk)
        first = job.address["q_offset"] + row * size
        numbers = range(first // lanes, (first + size) // lanes)
        return [
            (n % self.config.query_port_count, n // self.config.query_port_count * lanes) for n in numbers
        ]

    def _row(self, job, side, size, head, stream, n):
        """Row n of a stream's keys or values of a head, with the zeros behind it."""
        size = key_bytes(self.config, size)
        config, ports = self.config, self.config.ports
        page, n = divmod(n, job.page_keys // config.streams) if job.page_keys else (0, n)
        at = (head * port_rows(config, job.page_keys or job.keys) + n // ports) * size
        return job.content[side, stream, n % ports][page][at : at + size]

    def _golden(self, job):
        """Return the results of a job, as bytes of each row."""
        config, size = self.config, job.dv * self.config.result_bits // 8

        def tensor(side, width):
            raw = b"".join(
                self._row(
                    job,
                    side,
                    width,
                    head,
                    key % config.streams,
                    key // config.streams,
                )[:width]
                for head in range(job.heads // job.kv_group)
                for key in range(job.keys)
            )
            return np.frombuffer(raw, np.int8).reshape(-1, job.keys, width)

        q = np.frombuffer(job.q, np.int8).reshape(job.heads, job.queries, job.dqk)
        core = CoreJob(job=job, q=q, k=tensor("k", job.dqk), v=tensor("v", job.dv))
        raw = self._counted(core).tobytes()
        return [raw[at : at + size] for at in range(0, len(raw), size)]

    def _counted(self, core):
        """Return the results of a job, and count the logits and results that do not fit."""
        job, cap = core.job, core.job.cap if self.config.logit_cap else 0
        for head, query in np.ndindex(job.heads, job.queries):
            scores = core.k[head // job.kv_group].astype(int) @ core.q[head, query].astype(int)
            for key, score in enumerate(scores.tolist()):
                beyond = not -(2**23) <= rounded(score * job.multiplier, job.shift) < 2**23
                self.saturated["logits"] += beyond and not cap and job.sees(query, key)

        def counting(value, bits):
            held = clamp(value, bits)
            if bits == self.config.result_bits:
                self.saturated["results"] += int((held != value).sum())
            return held

        clamp = formats.saturated
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(formats, "saturated", counting)
            return core.expected(self.config)

    def _pass(self, this):
        config, job = self.config, this.job
        self.commands.append((len(this.rows), job.dqk, job.dv, job.scale))
        self.empty.append(int(is_empty(this)))
        self.beats.append([])
        for head, query in this.rows:
            if config.decodes:
                for port, _ in self._query_parts(job, head * job.queries + query):
                    self.read[query_port(config, port)] += config.lanes
                continue
            for port in range(config.query_port_count):
                self.read[query_port(config, port)] += 16 * query_units(config, job.dqk)
        if job.bits is not None:
            self.read[0] += 32 * -(-job.keys // (256 * config.tile_keys * config.streams))
        self.read[0] += 8 * len(page_entries(this))
        if job.slope is not None and this.opens_set:
            self.read[0] += 4 * len(this.heads)
        for head, query in this.rows:
            at = (head * job.queries + query) * job.dqk
            self.queries += parts(config, job.q[at : at + job.dqk])
            row = {"seen": [j for j in range(job.keys) if job.sees(query, j)]}
            row |= {"multiplier": job.multiplier, "shift": job.shift}
            if config.alibi:
                row["position"] = query + job.keys - job.queries
                row["slope"] = 0 if job.slope is None else job.slope[head]
            self.rows.append(row)
            row = head * job.queries + query
            result = None if not self.golden else job.golden[row]
            self.beats[-1] += self._result(job, row, result)
        count, ring = slots(config, job)
        self.written.append(sum(map(len, self.results)))
        self.phases.append(job.decode)
        if job.decode:
            self._decode(this)
            self.needed.append(self.counts())
            return
        for s in range(config.streams):
            if this.opens_head and not (job.reuse_kv and this.kv_head == 0):
                self._caches[s] = PlainCache()
            found = tiles(config, this, s)
            for n, (tile, lead, keys) in enumerate(found):
                first = (tile * config.tile_keys + lead) * config.streams + s
                self.tiles[s].append((first, keys, n == 0, n == len(found) - 1, job.cap))
                asked = range(lead, lead + keys)
                held, _ = self._caches[s].take(tile, asked, count, ring)
                for index in asked:
                    row = tile * config.tile_keys + index
                    for side, number, size, target in (
                        ("k", key_port, job.dqk, self.keys),
                        ("v", value_port, job.dv, self.values),
                    ):
                        content = self._row(job, side, size, this.kv_head, s, row)
                        target[s] += parts(config, content)
                        if index >= lead + held:
                            port = number(config, s, row % config.ports)
                            self.read[port] += key_bytes(config, size)
            if not found and not is_empty(this):
                self.tiles[s].append((None, 1, True, True, job.cap))
                self.keys[s] += [None] * -(-job.dqk // config.lanes)
                self.values[s] += [None] * -(-job.dv // config.lanes)
        self.needed.append(self.counts())

    def _decode(self, this):
        """Note a pass of a job that decodes: tiles of one stream, and parts of all ports at once."""
        config, job = self.config, this.job
        again, keep = kept(config, this)
        found = tiles(config, this, 0)
        for n, (tile, lead, rows) in enumerate(found):
            first = (tile * config.tile_keys + lead) * config.decode_streams
            self.tiles[0].append((first, rows, n == 0, n == len(found) - 1, job.cap))
            self.keeps.append(keep)
        if not found:
            self.tiles[0].append((None, 1, True, True, job.cap))
            self.keeps.append(keep)
        asked = [tile * config.tile_keys + lead + n for tile, lead, rows in found for n in range(rows)]
        for side, number, size in (("key", key_port, job.dqk), ("value", value_port, job.dv)):
            for row in asked or [0]:  # of a pass that sees nothing, too, a row is read
                by_port = [
                    parts(
                        config,
                        self._row(job, side[0], size, this.kv_head, s, row * config.ports + p),
                    )
                    for p in range(config.ports)
                    for s in range(config.streams)
                ]
                self.own[side] += [list(round_) for round_ in zip(*by_port, strict=True)]
                for s, p in np.ndindex(config.streams, config.ports):
                    self.read[number(config, s, p)] += 0 if again else key_bytes(config, size)

            count = len(self.own[side]) - len(self.marks[side])
            self.marks[side] += [(n == count - 1, keep) for n in range(count)]

    def counts(self):
        """Items of each of the core's streams so far."""
        found = {"command": len(self.commands), "row": len(self.rows), "query": len(self.queries)}
        found["empty"] = len(self.empty)
        if self.config.decodes:
            found |= {f"own_{side}": len(given) for side, given in self.own.items()}
        for s in range(self.config.streams):
            found |= {
                f"tile{s}": len(self.tiles[s]),
                f"key{s}": len(self.keys[s]),
                f"value{s}": len(self.values[s]),
            }
        return found

    def _result(self, job, row, result):
        """Note where a row of results must lie, units of it in turn at each port; give its beats."""
        config, step = self.config, self.width // 8
        units, length = port_units(config, job.dv), job.dv * config.result_bits // 8
        result = result or self.rng.randbytes(length)
        ports = [b"".join(result[at : at + 16] for at in range(16 * port, length, 16 * config.result_ports))
                 for port in range(config.result_ports)]  # fmt: skip
        for port, content in enumerate(ports):
            start = self.result_base[port] + job.address["o_offset"] + 16 * row * units
            known = [*content, *[None] * (16 * units - len(content))]
            self.results[port].update(enumerate(known, start))
        beats = -(-16 * units // step)
        padded = [content + self.rng.randbytes(beats * step - len(content)) for content in ports]
        return [
            int.from_bytes(b"".join(content[n : n + step] for content in padded), "little")
            for n in range(0, beats * step, step)
        ]

    def moved(self):
        """Return the bytes read and written by the names of `hw.attention.movers.movers.Moved`."""
        written = {result_port(self.config, port): len(given) for port, given in enumerate(self.results)}
        ways = {f"gmem{port}_write_bytes": count for port, count in written.items()}
        counts = {f"gmem{port}_read_bytes": count for port, count in enumerate(self.read)}
        return {name: (counts | ways)[name] for name in PortBytes(self.config).members}

    def check_results(self, memories):
        """Look whether ports of results have what they must have, and nothing else was written."""
        results = {result_port(self.config, port): wanted for port, wanted in enumerate(self.results)}
        for port, memory in enumerate(memories):
            wanted = results.get(port, {})
            changed = {at: byte for at, byte in memory.bytes.items() if self.memory[port].get(at) != byte}
            assert changed.keys() <= wanted.keys()
            assert all(memory.bytes.get(at) == byte for at, byte in wanted.items() if byte is not None)
