"""The streams of a core without movers: a job's commands, queries, keys and values, in the core's order."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.core.command import NO_KEY, UNIT_ELEMENTS
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.shapes import JobPass, JobShape
from hw.errors import InputError

#: Items by the names of the core's inputs; those of stream s are ``i_tile_s``, ``i_key_s`` and ``i_value_s``.
Streams = dict[str, list[Any]]


def attention_streams(config: AttentionConfig, job: IntegerJob) -> Streams:
    """Return the items of every input of `hw.attention.core.core.AttentionCore` for a job.

    Passes follow each other by K/V head, query head and tile of R queries; results leave in the same order.
    Modes are those of the job: masks, cap and slopes; jobs that decode are not, as their keys come by no
    stream.

    Raises `InputError` for a size that is no multiple of 16 or too large, a format, cap or slopes that the
    core does not have, or a bitmap of other tiles than the core's.
    """
    _check(config, job)
    (heads, queries, size), (kv_heads, keys, _) = job.q.shape, job.k.shape
    group = heads // kv_heads
    shape = JobShape(
        queries=queries,
        keys=keys,
        heads=heads,
        kv_group=group,
        query_size=size,
        value_size=job.v.shape[2],
        causal=job.mask.causal,
        window=job.mask.window,
        bitmap=job.mask.bitmap,
    )
    items: Streams = {name: [] for name in ("i_command", "i_row", "i_query", "i_empty")}
    items |= {f"i_{name}_{s}": [] for name in ("tile", "key", "value") for s in range(config.streams)}
    blocks = range(0, queries, config.rows)
    places = product(range(kv_heads), range(group), blocks)
    for (kv_head, member, first), given in zip(places, shape.passes(config), strict=True):
        _queries(config, job, kv_head * group + member, range(first, first + given.shape.rows), items)
        parts = {
            "last_key_part": given.shape.key_parts - 1,
            "last_value_part": given.shape.value_parts - 1,
        }
        scale = {"fraction": job.output.fraction}
        if config.output != "int16":
            scale = {"multiplier": job.output.multiplier, "shift": job.output.shift}
        command = {"rows": given.shape.rows, "value_units": given.shape.value_units, "scale": scale}
        items["i_command"].append(command | parts)
        items["i_empty"].append(int(given.shape.empty))
        if not given.shape.empty:
            _keys(config, job, kv_head, given, parts, items)
    return items


def _queries(config: AttentionConfig, job: IntegerJob, head: int, queries: range, items: Streams) -> None:
    """Add the rows of a pass: settings and parts of queries."""
    count, keys = job.q.shape[1], job.k.shape[1]
    firsts, lasts = job.mask.limits(count, keys)
    for query in queries:
        row = {
            "first": int(firsts[query]),
            "end": max(0, int(lasts[query]) + 1),
            "multiplier": job.scale.multiplier,
            "shift": job.scale.shift,
        }
        if config.alibi:
            slope = 0 if job.slopes is None else job.slopes[head]
            row |= {"position": query + keys - count, "slope": slope}
        items["i_row"].append(row)
        items["i_query"] += _parts(config, job.q[head, query])


def _keys(
    config: AttentionConfig,
    job: IntegerJob,
    kv_head: int,
    given: JobPass,
    parts: dict[str, int],
    items: Streams,
) -> None:
    """Add the tiles of a pass, and their keys and values.  A stream without any gets a dummy tile."""
    for s, tiles in enumerate(given.tiles):
        numbered = zip(tiles.numbers.tolist(), tiles.leads.tolist(), tiles.keys.tolist(), strict=True)
        places = [((n * config.tile_keys + lead) * config.streams + s, keys) for n, lead, keys in numbered]
        places = places or [(NO_KEY, 1)]
        for n, (first, keys) in enumerate(places):
            dummy = first == NO_KEY
            tile = {
                "first": first,
                "last_index": keys - 1,
                "opens": int(n == 0),
                "closes": int(n == len(places) - 1),
                "dummy": int(dummy),
            }
            if config.logit_cap:
                tile["cap"] = job.cap
            if config.decodes:
                tile["keep"] = 0
            items[f"i_tile_{s}"].append(tile | parts)
            for name, tensor in (("key", job.k), ("value", job.v)):
                rows = tensor[kv_head, first :: config.streams][:keys]
                for row in np.zeros((1, tensor.shape[2]), np.int8) if dummy else rows:
                    items[f"i_{name}_{s}"] += _parts(config, row)


def _parts(config: AttentionConfig, row: NDArray[np.int8]) -> list[list[int]]:
    """Cut a row into parts of D elements, the last one padded with zeros."""
    padded = np.pad(row, (0, -len(row) % config.lanes))
    parts: list[list[int]] = padded.reshape(-1, config.lanes).tolist()
    return parts


def _check(config: AttentionConfig, job: IntegerJob) -> None:
    for name, size in (("elements of a query", job.q.shape[2]), ("elements of a value", job.v.shape[2])):
        if size % UNIT_ELEMENTS or not 0 < size <= config.max_head_dim:
            legal = f"a multiple of {UNIT_ELEMENTS} up to {config.max_head_dim}"
            raise InputError(name, size, legal)
    if job.output.kind != config.output:
        raise InputError("format of results", job.output.kind, config.output)
    if job.cap and not config.logit_cap:
        raise InputError("cap", job.cap, "0 for a core without logit_cap")
    if job.slopes is not None and not config.alibi:
        raise InputError("slopes", job.slopes, "None for a core without alibi")
    if job.mask.bitmap is not None:
        tile = (job.mask.tile_queries, job.mask.tile_keys)
        if tile != (config.rows, config.tile_span):
            raise InputError("tile of the bitmap", tile, f"{(config.rows, config.tile_span)}")
