"""Division of a launch into jobs: the heads and sequences of each, and the packing of heads."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.core.gathering import Gathering
from hw.attention.driver.shapes import JobShape
from hw.attention.driver.workload import AttentionWorkload, Bitmap, bitmap_bits, size_in_memory
from hw.attention.walk.job_setup import DECODE_ROWS
from hw.errors import InputError

#: Cycles for a beat while all ports read: HBM supplies about two thirds of their width.
_BEAT_CYCLES = 1.5
#: Shortest jobs, in cycles, whose followers' descriptors arrive in time.  By prediction, launches of shorter
#: jobs take up to 150 cycles more than one job of all heads, those of longer jobs none.  Where all ports
#: share a channel, descriptors cost the cycles of their bytes.
DESCRIPTOR_CYCLES = 128


@dataclass(frozen=True, kw_only=True, eq=False)
class Share:
    """The share of a job in a launch: heads of one sequence that differ in their tensors only."""

    sequence: int  #: Its number.
    #: ``heads``, ``kv_heads``: of the launch.
    heads: slice
    kv_heads: slice
    shape: JobShape  #: The job; its bitmap is in blocks of the engine.


def divide(workload: AttentionWorkload, config: AttentionConfig) -> tuple[Share, ...]:
    """Divide a launch into jobs: sequence by sequence, with as many heads together as have equal settings.

    With ``decode`` each job decodes if a simple estimate says that this takes fewer cycles.  A change of
    phase drains the engine, so the jobs of one phase follow one another.  The phase of the first job comes
    first, as its place in a launch is fixed: it has no offsets.

    Raises `InputError` for a workload that the configuration does not support, or a bitmap that does not fit
    its blocks.
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
    shares = list(_shares(workload, config))
    first = shares[0].shape.decode
    shares.sort(key=lambda share: share.shape.decode != first)
    for n in range(1, len(shares)):
        same = _keeps(shares[n - 1], shares[n])
        shares[n] = replace(shares[n], shape=replace(shares[n].shape, reuse_kv=same))
    return tuple(shares)


def separate_groups_are_free(workload: AttentionWorkload, config: AttentionConfig) -> bool:
    """Say whether a launch costs no cycle more with a job for each K/V head, which then has settings of its
    own.

    It costs none if the launch has as many jobs anyway, or if all jobs take `DESCRIPTOR_CYCLES` or more.
    """
    settings = workload.settings or (0,) * workload.heads
    numbers: dict[tuple[int, int], int] = {}
    own = [
        numbers.setdefault((n, head // workload.kv_group), len(numbers)) for head, n in enumerate(settings)
    ]
    shares = divide(replace(workload, settings=tuple(own)), config)
    if len(shares) == len(divide(workload, config)):
        return True
    return all(_cycles(share.shape, config) >= DESCRIPTOR_CYCLES for share in shares)


def _keeps(before: Share, share: Share) -> bool:
    """Say whether the caches hold the first K/V head of a job since the job before."""
    if before.shape.decode or share.shape.decode:
        return False
    return before.sequence == share.sequence and before.kv_heads.stop - 1 == share.kv_heads.start


def _shares(workload: AttentionWorkload, config: AttentionConfig) -> Iterator[Share]:
    group = workload.kv_group
    for sequence, (queries, keys) in enumerate(zip(workload.queries, workload.keys, strict=True)):
        for heads in _runs(workload, sequence):
            kv_heads = slice(heads.start // group, (heads.stop - 1) // group + 1)
            kv_group = min(group, heads.stop - heads.start)
            text = workload.bitmap(sequence, heads.start)
            shape = JobShape(
                queries=queries,
                keys=keys,
                heads=heads.stop - heads.start,
                kv_group=kv_group,
                query_size=size_in_memory(workload.query_size),
                value_size=size_in_memory(workload.value_size),
                causal=workload.causal,
                window=workload.window,
                slopes=workload.alibi,
                page_keys=workload.page_keys,
            )
            if text is None:
                shape = _quickest(workload, config, shape)
            else:
                pack = workload.pack or _sparse_pack(workload, config, kv_group)
                pack = min(pack, kv_group)
                bitmap = _in_blocks(workload, config, queries, keys, text, pack)
                shape = replace(shape, pack=pack, bitmap=bitmap)
            yield Share(sequence=sequence, heads=heads, kv_heads=kv_heads, shape=shape)


def _runs(workload: AttentionWorkload, sequence: int) -> Iterator[slice]:
    """Return runs of heads with equal settings: whole groups together, or heads of one group."""

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


def _quickest(workload: AttentionWorkload, config: AttentionConfig, shape: JobShape) -> JobShape:
    """Choose the packed heads, and the phase, of a job without a bitmap."""
    group = shape.kv_group
    packs = [min(workload.pack, group)] if workload.pack else range(1, min(group, config.rows) + 1)
    prefill = [replace(shape, pack=pack) for pack in packs]
    best = min(prefill, key=lambda job: _keys_met(job, config))
    if not config.decodes or workload.page_keys:
        return best
    decoding = [replace(shape, pack=pack, decode=True) for pack in packs if pack <= DECODE_ROWS]
    return min([best, *decoding], key=lambda job: _cycles(job, config))


def _sets(job: JobShape) -> int:
    """Count the sets of packed heads of a K/V head."""
    return -(-job.kv_group // job.pack)


def _keys_met(job: JobShape, config: AttentionConfig) -> int:
    """Count the keys in all passes of a K/V head."""
    begin, end = _limits(job, config)
    return _sets(job) * int((end - begin).sum())


def _limits(job: JobShape, config: AttentionConfig) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Return the first key of each query tile of a head, and the end of its keys."""
    block = job.positions(config)
    first = np.arange(0, job.queries, block)
    last = np.minimum(first + block, job.queries) + job.keys - job.queries
    end = np.clip(last, 0, job.keys) if job.causal else np.full(len(first), job.keys)
    begin = np.zeros(len(first), np.int64)
    if job.window:
        begin = np.maximum(first + job.keys - job.queries - job.window + 1, 0)
    return begin, np.maximum(end, begin + 1)


def _cycles(job: JobShape, config: AttentionConfig) -> float:
    """Estimate the cycles of a K/V head: for each pass those of its slowest stage.

    A pass takes a cycle for each part of a key, or of a value, of a stream.  In prefill it also loads its
    queries, a part a cycle.  A pass that decodes takes its keys at the pace of memory, unless they are kept,
    and at least the cycles of its combination.
    """
    begin, end = _limits(job, config)
    streams = job.streams(config)
    key_parts, value_parts = (-(-size // config.lanes) for size in (job.query_size, job.value_size))
    keys = -(-end // streams) - begin // streams
    parts = keys * max(key_parts, value_parts)
    if job.decode:
        combined = Gathering.starts(config, 0, before=0, steps=job.value_size // config.merge_lanes)
        if job.keeps(config):
            return float(np.maximum(_BEAT_CYCLES * parts, _sets(job) * np.maximum(parts, combined)).sum())
        passes = np.maximum(_BEAT_CYCLES * parts, combined)
    else:
        passes = np.maximum(parts, job.pack * min(job.positions(config), job.queries) * key_parts)
    return _sets(job) * float(passes.sum())


def _sparse_pack(workload: AttentionWorkload, config: AttentionConfig, kv_group: int) -> int:
    """Return the most heads with which a block of the engine lies within a block of the bitmap."""
    for pack in range(min(kv_group, config.rows), 1, -1):
        if workload.bitmap_queries and workload.bitmap_queries % (config.rows // pack) == 0:
            return pack
    return 1


def _in_blocks(
    workload: AttentionWorkload, config: AttentionConfig, queries: int, keys: int, text: Bitmap, pack: int
) -> NDArray[np.bool_]:
    """Return a bitmap in blocks of the engine."""
    block, tile = config.rows // pack, config.tile_span
    by_queries, by_keys = workload.bitmap_queries or block, workload.bitmap_keys or tile
    for name, size, unit in (("bitmap_queries", by_queries, block), ("bitmap_keys", by_keys, tile)):
        if size % unit:
            raise InputError(name, size, f"a multiple of {unit}, the block of the engine")
    given, legal = (len(text), len(text[0])), (-(-queries // by_queries), -(-keys // by_keys))
    if given != legal:
        expected = f"[{legal[0]}, {legal[1]}]: blocks of {by_queries} queries and {by_keys} keys"
        raise InputError("shape of the bitmap", given, expected)
    rows = np.arange(-(-queries // block)) * block // by_queries
    columns = np.arange(-(-keys // tile)) * tile // by_keys
    return bitmap_bits(text)[np.ix_(rows, columns)]
