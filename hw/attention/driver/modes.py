"""Modes of an attention launch, and the tokens that its jobs read."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.driver.division import divide
from hw.attention.driver.mask import Mask
from hw.attention.driver.shapes import JobShape
from hw.attention.driver.workload import AttentionWorkload, bitmap_text

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequence:
    """Tokens of one sequence: queries ``first <= i < end`` of the packed tensors.

    Its keys are a range of the packed keys, or indices into a pool, whose ``pages`` hold them in order.
    """

    queries: slice
    keys: slice | NDArray[np.int64]
    pages: NDArray[np.int64] | None = None

    @property
    def query_count(self) -> int:
        """Number of queries."""
        return int(self.queries.stop - self.queries.start)

    @property
    def key_count(self) -> int:
        """Number of keys."""
        return int(self.keys.stop - self.keys.start) if isinstance(self.keys, slice) else len(self.keys)

    def key_places(self, seen: Bits) -> NDArray[np.int64]:
        """Return the indices in the tensors of the keys that are ``seen``."""
        if isinstance(self.keys, slice):
            return np.flatnonzero(seen) + self.keys.start
        return self.keys[seen]


@dataclass(frozen=True, kw_only=True, eq=False)
class Modes:
    """Shapes, modes and formats of a launch, checked."""

    heads: int  #: Query heads; a multiple of those of keys and values.
    kv_heads: int
    #: dqk and dv of the user's tensors.
    query_size: int
    value_size: int
    softmax_scale: Floats  #: ``[H]``.
    sequences: tuple[Sequence, ...]  #: At least one.
    page_keys: int  #: Keys of a page, 0 for none.
    #: Modes; window 0 for none.
    causal: bool
    window: int
    #: For each sequence bool ``[1 or H, blocks of queries, tiles of keys]``, or None.
    bitmaps: tuple[Bits | None, ...]
    #: Queries and keys of a bit; 0 for the engine's own blocks.
    bitmap_queries: int
    bitmap_keys: int
    #: Largest logit; ALiBi slope ``[H]``; or None.
    cap: float | None
    slopes: Floats | None
    #: ``[H]``, or None for the best.
    fraction: NDArray[np.int64] | None
    output_scale: Floats | None
    pack: int  #: Query heads of a group in one query tile, 0 for the best.

    @property
    def group(self) -> int:
        """Query heads that share keys and values."""
        return self.heads // self.kv_heads

    def factor(self, head: int, q_scale: Floats, k_scale: Floats) -> float:
        """Return the real value of a step of a head's raw scores: softmax scale times steps of q and k."""
        return float(np.prod((self.softmax_scale[head], q_scale[head], k_scale[head // self.group])))

    def workload(self, q_scale: Floats, k_scale: Floats, v_scale: Floats) -> AttentionWorkload:
        """Return the launch without its tensors; of steps and formats only their equality among heads
        remains.
        """
        numbers: dict[tuple[object, ...], int] = {}
        settings = []
        for head in range(self.heads):
            own = (
                self.factor(head, q_scale, k_scale),
                float(v_scale[head // self.group]),
                None if self.fraction is None else int(self.fraction[head]),
                None if self.output_scale is None else float(self.output_scale[head]),
            )
            settings.append(numbers.setdefault(own, len(numbers)))
        bitmaps = [() if of is None else tuple(map(bitmap_text, of)) for of in self.bitmaps]
        return AttentionWorkload(
            heads=self.heads,
            kv_heads=self.kv_heads,
            queries=tuple(tokens.query_count for tokens in self.sequences),
            keys=tuple(tokens.key_count for tokens in self.sequences),
            query_size=self.query_size,
            value_size=self.value_size,
            causal=self.causal,
            window=self.window,
            bitmaps=tuple(bitmaps) if any(bitmaps) else (),
            bitmap_queries=self.bitmap_queries,
            bitmap_keys=self.bitmap_keys,
            pack=self.pack,
            page_keys=self.page_keys,
            logit_cap=self.cap is not None,
            alibi=self.slopes is not None,
            settings=tuple(settings) if len(numbers) > 1 else (),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Read:
    """Tokens in some visible pair of a query and a key; all others have no effect."""

    queries: Bits  #: ``[H, Nq]``.
    keys: Bits  #: ``[Hkv, Nk]``, for keys and for values.

    def of(self, name: str) -> Bits:
        """Return the tokens of the tensor ``name``."""
        return self.queries if name == "q" else self.keys


def mask_of(shape: JobShape, config: AttentionConfig) -> Mask:
    """Return the mask of a job."""
    return Mask(
        causal=shape.causal,
        window=shape.window,
        bitmap=shape.bitmap,
        tile_queries=shape.positions(config),
        tile_keys=shape.streams(config) * config.tile_keys,
    )


def read_tokens(
    modes: Modes, workload: AttentionWorkload, config: AttentionConfig, *, queries: int, keys: int
) -> Read:
    """Return the tokens that a launch reads of ``queries`` and ``keys`` in its tensors.

    Raises `InputError` for modes that the configuration does not support, and for a bitmap that does not fit.
    """
    read = Read(
        queries=np.zeros((modes.heads, queries), np.bool_), keys=np.zeros((modes.kv_heads, keys), np.bool_)
    )
    for share in divide(workload, config):
        tokens = modes.sequences[share.sequence]
        own_queries, own_keys = mask_of(share.shape, config).read(tokens.query_count, tokens.key_count)
        read.queries[share.heads, tokens.queries] |= own_queries
        read.keys[share.kv_heads, tokens.key_places(own_keys)] = True
    return read
