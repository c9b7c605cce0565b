"""How a launch becomes jobs of the engine: which heads and sequences go together, and packed how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.model.shapes import JobShape
from hw.attention.model.workload import AttentionWorkload, Bitmap, bitmap_bits, size_in_memory
from hw.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class Share:
    """A launch's share of one job: heads of one sequence that have everything but their tensors in common.

    Members
    -------
    sequence
        Its number.
    heads, kv_heads
        Of the launch.
    shape : JobShape
        The job; its bitmap is in blocks of the engine.
    """

    sequence: int
    heads: slice
    kv_heads: slice
    shape: JobShape


def divide(workload: AttentionWorkload, config: AttentionConfig) -> tuple[Share, ...]:
    """Divide a launch into jobs: sequence by sequence, in each as many heads together as have equal settings.

    Raises
    ------
    InputError
        For what the configuration cannot do, and for a bitmap that does not fit the engine's blocks.
    """
    for name in ("query_size", "value_size"):
        if getattr(workload, name) > config.max_head_dim:
            legal = f"at most {config.max_head_dim}, folds * lanes of the configuration"
            raise InputError(name, getattr(workload, name), legal)
    for name in ("logit_cap", "alibi"):
        if getattr(workload, name) and not getattr(config, name):
            raise InputError(name, True, f"false: the configuration has no {name}")
    if workload.page_keys and not config.paged:
        raise InputError("page_keys", workload.page_keys, "0: the configuration is not paged")
    if 0 < workload.page_keys < config.tile_span:
        legal = f"0 or at least {config.tile_span}, the streams * tile_keys of the configuration"
        raise InputError("page_keys", workload.page_keys, legal)
    if workload.pack > config.rows:
        raise InputError("pack", workload.pack, f"at most {config.rows}, the rows of the configuration")
    return tuple(_shares(workload, config))


def _shares(workload: AttentionWorkload, config: AttentionConfig) -> Iterator[Share]:
    group = workload.kv_group
    for sequence, (queries, keys) in enumerate(zip(workload.queries, workload.keys, strict=True)):
        last_kv = -1
        for heads in _runs(workload, sequence):
            kv_heads = slice(heads.start // group, (heads.stop - 1) // group + 1)
            kv_group = min(group, heads.stop - heads.start)
            text = workload.bitmap(sequence, heads.start)
            pack = _pack(workload, config, queries, keys, kv_group, sparse=text is not None)
            yield Share(
                sequence=sequence,
                heads=heads,
                kv_heads=kv_heads,
                shape=JobShape(
                    queries=queries,
                    keys=keys,
                    heads=heads.stop - heads.start,
                    kv_group=kv_group,
                    pack=pack,
                    query_size=size_in_memory(workload.query_size),
                    value_size=size_in_memory(workload.value_size),
                    causal=workload.causal,
                    window=workload.window,
                    bitmap=None if text is None else _in_blocks(workload, config, queries, keys, text, pack),
                    slopes=workload.alibi,
                    page_keys=workload.page_keys,
                    reuse_kv=kv_heads.start == last_kv,
                ),
            )
            last_kv = kv_heads.stop - 1


def _runs(workload: AttentionWorkload, sequence: int) -> Iterator[slice]:
    """Give runs of heads with equal settings: whole groups together, or heads of one group."""

    def settings(head: int) -> tuple[object, ...]:
        own = workload.settings[head] if workload.settings else 0
        return own, workload.bitmap(sequence, head)

    group = workload.kv_group
    runs: list[slice] = []
    for first in range(0, workload.heads, group):
        heads = range(first, first + group)
        starts = [h for h in heads if h == first or settings(h) != settings(h - 1)]
        before = runs[-1] if runs else None
        whole = before is not None and before.start % group == 0 and before.stop == first
        if len(starts) == 1 and whole and before is not None and settings(first) == settings(before.start):
            runs[-1] = slice(before.start, first + group)
        else:
            runs += [slice(a, b) for a, b in zip(starts, [*starts[1:], first + group], strict=True)]
    return iter(runs)


def _pack(
    workload: AttentionWorkload,
    config: AttentionConfig,
    queries: int,
    keys: int,
    kv_group: int,
    *,
    sparse: bool,
) -> int:
    """Give the heads of a query tile: those with which the rows meet the fewest keys in all."""
    if workload.pack:
        return min(workload.pack, kv_group)
    if sparse:
        return _sparse_pack(workload, config, kv_group)

    def met(pack: int) -> int:
        block = config.rows // pack
        first = np.arange(0, queries, block)
        last = np.minimum(first + block, queries) + keys - queries
        end = np.clip(last, 0, keys) if workload.causal else np.full(len(first), keys)
        begin = np.zeros(len(first), np.int64)
        if workload.window:
            begin = np.maximum(first + keys - queries - workload.window + 1, 0)
        return -(-kv_group // pack) * int(np.maximum(end - begin, 1).sum())

    return min(range(1, min(kv_group, config.rows) + 1), key=lambda pack: (met(pack), pack))


def _sparse_pack(workload: AttentionWorkload, config: AttentionConfig, kv_group: int) -> int:
    """Give the most heads with which a block of the engine lies within a block of the bitmap."""
    for pack in range(min(kv_group, config.rows), 1, -1):
        if workload.bitmap_queries and workload.bitmap_queries % (config.rows // pack) == 0:
            return pack
    return 1


def _in_blocks(
    workload: AttentionWorkload, config: AttentionConfig, queries: int, keys: int, text: Bitmap, pack: int
) -> NDArray[np.bool_]:
    """Give a bitmap in blocks of the engine."""
    block, tile = config.rows // pack, config.tile_span
    by_queries, by_keys = workload.bitmap_queries or block, workload.bitmap_keys or tile
    for name, size, unit in (("bitmap_queries", by_queries, block), ("bitmap_keys", by_keys, tile)):
        if size % unit:
            raise InputError(name, size, f"a multiple of {unit}, the block of the engine")
    given, legal = (len(text), len(text[0])), (-(-queries // by_queries), -(-keys // by_keys))
    if given != legal:
        what = f"[{legal[0]}, {legal[1]}]: blocks of {by_queries} queries and {by_keys} keys"
        raise InputError("shape of the bitmap", given, what)
    rows = np.arange(-(-queries // block)) * block // by_queries
    columns = np.arange(-(-keys // tile)) * tile // by_keys
    return bitmap_bits(text)[np.ix_(rows, columns)]
