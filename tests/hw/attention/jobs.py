"""Query tiles and launches for the tests: random or extreme inputs, and what must come of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hw.attention.config import AttentionConfig
from hw.attention.core import AttentionCore
from hw.lib.place import InlinePlacer
from sim.golden.attention import Scaling, attention, attention_tile
from tests.support.streams import Side, exchange

SMALL = AttentionConfig(rows=4, head_dim=32, tile_keys=16, ports_per_stream=1)


def int8(rng, *shape, spread=128):
    return rng.integers(-spread, spread, shape).astype(np.int8)


@dataclass
class TileJob:
    """One command of the core with its tensors."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    multiplier: int
    shift: int
    fraction: int

    @property
    def command(self):
        return {
            "keys": len(self.k),
            "rows": len(self.q),
            "score_multiplier": self.multiplier,
            "score_shift": self.shift,
            "output_fraction": self.fraction,
        }

    def expected(self, config):
        return attention_tile(
            self.q, self.k, self.v, self.multiplier, self.shift, self.fraction, config.tile_keys
        )


def random_tile(rng, config, *, rows=None, keys=None, spread=128):
    """Logits from flat to far apart: the shift decides how far."""
    rows = rows or int(rng.integers(1, config.rows + 1))
    keys = keys or int(rng.choice([1, 2, rng.integers(1, 70), config.tile_keys * rng.integers(1, 5)]))
    return TileJob(
        q=int8(rng, rows, config.head_dim, spread=spread),
        k=int8(rng, keys, config.head_dim, spread=spread),
        v=int8(rng, keys, config.head_dim),
        multiplier=int(rng.integers(2**16, 2**17)),
        shift=int(rng.integers(14, 24)),
        fraction=int(rng.integers(0, 10)),
    )


def beats(outputs, beat_width):
    """int16 [rows, D] as a list of beats."""
    raw = np.ascontiguousarray(outputs).astype("<i2").tobytes()
    size = beat_width // 8
    return [int.from_bytes(raw[n : n + size], "little") for n in range(0, len(raw), size)]


def run_core(config, jobs, *, stalls=(), seed=0, beat_width=256, watch=None, limit=60_000):
    """Put ``jobs`` through a core and check every beat; gives the sides, with the cycles of the output.

    ``stalls`` maps stream names to the probability of a pause; ``watch`` makes a testbench of the core.
    """
    stalls = dict(stalls)
    core = AttentionCore(config, InlinePlacer(), beat_width=beat_width)

    def rows_of(name):
        return [row.tolist() for job in jobs for row in getattr(job, name)]

    expected = [
        {"data": beat, "last": int(n == len(tile) - 1)}
        for job in jobs
        for tile in [beats(job.expected(config), beat_width)]
        for n, beat in enumerate(tile)
    ]
    sides = {
        "command": Side(core.i_command, items=[job.command for job in jobs]),
        "query": Side(core.i_query, items=rows_of("q")),
        "key": Side(core.i_key, items=rows_of("k")),
        "value": Side(core.i_value, items=rows_of("v")),
        "output": Side(core.o, count=len(expected)),
    }
    for name, side in sides.items():
        side.stall = stalls.get(name, 0.0)
    exchange(core, sides, seed=seed, background=[watch(core)] if watch else (), limit=limit)
    assert sides["output"].received == expected
    return sides


@dataclass
class Launch:
    """One job of the movers and the kernel, with its tensors."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: Scaling
    fraction: int

    def expected(self, config):
        return attention(
            self.q, self.k, self.v, scale=self.scale, fraction=self.fraction, tile_keys=config.tile_keys
        )

    @property
    def scalars(self):
        return {
            "queries": self.q.shape[1],
            "keys": self.k.shape[1],
            "heads": self.q.shape[0],
            "kv_group": self.q.shape[0] // max(1, self.k.shape[0]),
            "score_multiplier": self.scale.multiplier,
            "score_shift": self.scale.shift,
            "output_fraction": self.fraction,
        }


def random_launch(rng, config, *, kv_heads=1, group=1, queries=1, keys=1):
    return Launch(
        q=int8(rng, kv_heads * group, queries, config.head_dim),
        k=int8(rng, kv_heads, keys, config.head_dim),
        v=int8(rng, kv_heads, keys, config.head_dim),
        scale=Scaling(multiplier=int(rng.integers(2**16, 2**17)), shift=int(rng.integers(16, 22))),
        fraction=int(rng.integers(0, 10)),
    )
