"""Jobs with tensors for the core: its streams, and the results that must come."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from hw.attention.config import AttentionConfig
from hw.attention.core.command import NO_KEY
from hw.attention.core.core import AttentionCore
from hw.attention.driver.formats import Output, Scaling
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.mask import Mask
from hw.attention.driver.shapes import PassShape
from hw.lib.place import InlinePlacer
from sim.golden.attention.formats import Arithmetic
from sim.golden.attention.model import attention_job
from tests.hw.attention.plain import PlainJob, PlainPass, last_part, parts, passes, tiles
from tests.support.gateware.streams import Side, exchange


@dataclass
class CoreJob:
    """A job with its tensors."""

    job: PlainJob
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray

    @classmethod
    def random(cls, rng, job: PlainJob, *, spread=128) -> CoreJob:
        def int8(*shape, most=128):
            return rng.integers(-most, most, shape).astype(np.int8)

        kv_heads = job.heads // job.kv_group
        return cls(
            job=job,
            q=int8(job.heads, job.queries, job.dqk, most=spread),
            k=int8(kv_heads, job.keys, job.dqk, most=spread),
            v=int8(kv_heads, job.keys, job.dv),
        )

    def beats_a_row(self, config: AttentionConfig, beat_width: int) -> int:
        return -(-self.job.dv * config.result_bits // beat_width)

    def expected(self, config: AttentionConfig) -> np.ndarray:
        """Return the results, [heads, queries, dv], as the golden model has them."""
        job = self.job
        mask = Mask(
            causal=job.causal,
            window=job.window if job.windowed else 0,
            bitmap=job.bits,
            tile_queries=config.rows // job.pack,
            tile_keys=config.tile_keys * config.streams,
        )
        golden = IntegerJob(
            q=self.q,
            k=self.k,
            v=self.v,
            scale=Scaling(multiplier=job.multiplier, shift=job.shift),
            output=Output(kind=config.output, **job.scale),
            mask=mask,
            cap=job.cap if config.logit_cap else 0,
            slopes=None if job.slope is None else tuple(job.slope),
        )
        arithmetic = Arithmetic(
            tile_keys=config.tile_keys,
            streams=config.streams,
            probability_bits=config.probability_bits,
            exp_segments=config.exp_segments,
        )
        return attention_job(golden, arithmetic)


def tile_list(config: AttentionConfig, this: PlainPass, stream: int) -> list[tuple[int, int]]:
    """List (index of the first key, keys) of a stream's tiles in a pass; a dummy if there are none."""
    return [
        ((n * config.tile_keys + lead) * config.streams + stream, keys)
        for n, lead, keys in tiles(config, this, stream)
    ] or [(NO_KEY, 1)]


def is_empty(this: PlainPass) -> bool:
    """Say whether the core is told that a pass has no tiles; others that see no key have dummies."""
    bits = this.job.bits
    return this.span == (0, 0) or (bits is not None and not bits[this.block].any())


def row_settings(config: AttentionConfig, this: PlainPass) -> list[dict]:
    """What each row of a pass is told."""
    job, settings = this.job, []
    for head, query in this.rows:
        position = query + job.keys - job.queries
        row = {
            "first": max(0, position - job.window + 1) if job.windowed else 0,
            "end": max(0, position + 1) if job.causal else job.keys,
            "multiplier": job.multiplier,
            "shift": job.shift,
        }
        if config.alibi:
            row |= {"position": position, "slope": 0 if job.slope is None else job.slope[head]}
        settings.append(row)
    return settings


def feed(config: AttentionConfig, jobs: list[CoreJob], rng) -> dict[str, list]:
    """Return the items of all inputs of the core, by name; those of stream s are ``tile_s`` and so on."""
    items: dict[str, list] = {name: [] for name in ("command", "row", "query", "empty")}
    items |= {f"{name}_{s}": [] for name in ("tile", "key", "value") for s in range(config.streams)}
    for given in jobs:
        job = given.job
        parts_of = {
            "last_key_part": last_part(config, job.dqk),
            "last_value_part": last_part(config, job.dv),
        }
        for this in passes(config, job):
            command = {"rows": len(this.rows), "value_units": job.dv // 16, "scale": job.scale}
            items["command"].append(command | parts_of)
            items["row"] += row_settings(config, this)
            for head, query in this.rows:
                items["query"] += parts(config, given.q[head, query].tobytes())
            items["empty"].append(int(is_empty(this)))
            for s in range(config.streams) if not is_empty(this) else ():
                tiles_here = tile_list(config, this, s)
                for n, (first, keys) in enumerate(tiles_here):
                    dummy = first == NO_KEY
                    tile = {
                        "first": first,
                        "last_index": keys - 1,
                        "opens": int(n == 0),
                        "closes": int(n == len(tiles_here) - 1),
                        "dummy": int(dummy),
                    }
                    if config.logit_cap:
                        tile["cap"] = job.cap
                    items[f"tile_{s}"].append(tile | parts_of)
                    for name, tensor in (("key", given.k), ("value", given.v)):
                        rows = tensor[this.kv_head, first : first + keys * config.streams : config.streams]
                        if dummy:  # parts without meaning
                            rows = rng.integers(-128, 128, (1, tensor.shape[2])).astype(np.int8)
                        for row in rows:
                            items[f"{name}_{s}"] += parts(config, row.tobytes())
    return items


def beats(config: AttentionConfig, jobs: list[CoreJob], beat_width: int) -> list[tuple[int, int, int]]:
    """Return (bits, how many of them count, last) of every beat of results."""
    found = []
    for given in jobs:
        results = given.expected(config)
        for this in passes(config, given.job):
            of_pass = []
            for head, query in this.rows:
                raw = np.ascontiguousarray(results[head, query]).tobytes()
                size = beat_width // 8
                for start in range(0, len(raw), size):
                    piece = raw[start : start + size]
                    of_pass.append((int.from_bytes(piece, "little"), 8 * len(piece), 0))
            of_pass[-1] = (*of_pass[-1][:2], 1)
            found += of_pass
    return found


def run_core(
    config,
    jobs,
    *,
    stalls=(),
    seed=0,
    beat_width=128,
    watch=(),
    limit=60_000,
    placer=InlinePlacer,
    check=True,
):
    """Put ``jobs`` through a core and check every beat; gives the sides, with the cycles of the output.

    ``stalls`` maps stream names (without the number of the stream) to the probability of a pause; ``watch``
    are makers of testbenches of the core.  Without ``check`` beats are only counted.
    """
    stalls = dict(stalls)
    core = built_core(config, placer, beat_width)
    items = feed(config, jobs, np.random.default_rng(seed))
    count = sum(len(given.q) * given.job.queries * given.beats_a_row(config, beat_width) for given in jobs)
    sides = {}
    for name, payloads in items.items():
        kind, _, number = name.partition("_")
        port = getattr(core, f"i_{kind}")
        sides[name] = Side(port[int(number)] if number else port, items=payloads, stall=stalls.get(kind, 0))
    sides["output"] = Side(core.o, count=count, stall=stalls.get("output", 0))
    exchange(core, sides, seed=seed, background=[make(core) for make in watch], limit=limit)
    if check:
        expected = beats(config, jobs, beat_width)
        got = [
            (beat["data"] & (1 << bits) - 1, bits, beat["last"])
            for beat, (_, bits, _) in zip(sides["output"].received, expected, strict=True)
        ]
        assert got == expected
    return sides


@functools.lru_cache(maxsize=4)
def built_core(config: AttentionConfig, placer: type, beat_width: int) -> AttentionCore:
    """Return the core of a configuration, the same one each time: its simulator is compiled once."""
    return AttentionCore(config, placer(), beat_width=beat_width)


class BarePlacer:
    """Leaves the rows out: what they are told stays, what they give is zero."""

    def place(self, m, name, cell, make):
        component = make()
        component._MustUse__used = True  # it is left out on purpose: Amaranth is not to warn
        return component.signature.create(path=(name,))


def taken_parts(lists: list[list[int]], number: int):
    """Make a testbench that appends a list of the cycles in which a stream takes a part of a key."""
    lists.append([])
    cycles = lists[number]

    def watch(core):
        async def note(ctx):
            port, cycle = core.i_key[number], 0
            while True:
                _, _, valid, ready = await ctx.tick().sample(port.valid, port.ready)
                if valid and ready:
                    cycles.append(cycle)
                cycle += 1

        return note

    return watch


def shapes(config: AttentionConfig, jobs: list[CoreJob]) -> list[PassShape]:
    """Return the passes as the cycle model takes them, counted from what the core is fed with."""
    return [
        PassShape(
            rows=len(this.rows),
            keys=tuple(
                0 if is_empty(this) else sum(keys for _, keys in tile_list(config, this, s))
                for s in range(config.streams)
            ),
            leads=tuple(sum(lead for _, lead, _ in tiles(config, this, s)) for s in range(config.streams)),
            key_parts=last_part(config, given.job.dqk) + 1,
            value_parts=last_part(config, given.job.dv) + 1,
            value_units=given.job.dv // 16,
        )
        for given in jobs
        for this in passes(config, given.job)
    ]
