"""An attention launch as plain values: shapes, modes and formats, no tensors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import MAX_KEYS
from hw.attention.core.command import UNIT_ELEMENTS
from hw.errors import InputError, check_power_of_two, check_whole

#: A bitmap in text: for each block of queries a ``0`` or ``1`` for each tile of keys.
Bitmap = tuple[str, ...]


def _as_tuple(value: Any) -> Any:
    """Return lists, and those in them, as tuples; all else as it is."""
    return tuple(map(_as_tuple, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True, kw_only=True)
class AttentionWorkload:
    """One launch of the attention engine, of any configuration.

    Raises `InputError` for the first field out of its range.
    """

    #: ``heads``, ``kv_heads``: query heads; heads of keys and values, each shared by equally many query
    #: heads; 0 for one each.
    heads: int
    kv_heads: int = 0
    #: ``queries``, ``keys``: tokens of each packed sequence; one number each for a launch of one sequence.
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    #: ``query_size``, ``value_size``: elements of a query or key, and of a value or result; padded in memory
    #: to `size_in_memory`.
    query_size: int
    value_size: int
    causal: bool = False  #: Keys after a query's position are hidden.
    window: int = 0  #: Newest keys that a query sees; 0 for no window.
    #: For each sequence its bitmaps, one for all heads or one for each, none to see all tiles. Empty if no
    #: sequence has one.
    bitmaps: tuple[tuple[Bitmap, ...], ...] = ()
    #: ``bitmap_queries``, ``bitmap_keys``: queries and keys of a bit; 0 for the engine's own blocks.
    bitmap_queries: int = 0
    bitmap_keys: int = 0
    pack: int = 0  #: Query heads of a group in one query tile; 0 for the best.
    #: Keys of a page, a power of two, if keys and values of sequences lie in pages; else 0.
    page_keys: int = 0
    #: ``logit_cap``, ``alibi``: whether logits are capped, and whether heads have slopes.
    logit_cap: bool = False
    alibi: bool = False
    #: A number for each query head: neighbours with equal numbers have the same scales and formats, and can
    #: share a job.  Empty if all have.
    settings: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("queries", "keys", "bitmaps", "settings"):
            # Fields are tuples, so that a workload has a hash.
            object.__setattr__(self, name, _as_tuple(getattr(self, name)))
        check_whole("heads", self.heads, 1)
        check_whole("kv_heads", self.kv_heads, 0)
        if self.heads % (self.kv_heads or self.heads):
            raise InputError("kv_heads", self.kv_heads, f"0 or a divisor of the {self.heads} heads")
        for name, lengths in (("queries", self.queries), ("keys", self.keys)):
            if not isinstance(lengths, tuple) or not lengths:
                raise InputError(name, lengths, "a list of the tokens of each sequence")
            for length in lengths:
                check_whole(name, length, 1, MAX_KEYS)
        if len(self.keys) != len(self.queries):
            raise InputError("keys", self.keys, f"as many numbers as queries: {len(self.queries)}")
        for name in ("query_size", "value_size"):
            check_whole(name, getattr(self, name), 1)
        for name in ("window", "bitmap_queries", "bitmap_keys"):
            check_whole(name, getattr(self, name), 0, MAX_KEYS)
        check_whole("pack", self.pack, 0, self.kv_group)
        check_whole("page_keys", self.page_keys, 0, MAX_KEYS)
        check_power_of_two("page_keys", self.page_keys, 1, MAX_KEYS, or_zero=True)
        self._check_bitmaps()
        if self.settings and len(self.settings) != self.heads:
            raise InputError("settings", self.settings, f"empty, or a number for each of {self.heads} heads")

    def _check_bitmaps(self) -> None:
        if self.bitmaps and len(self.bitmaps) != len(self.queries):
            raise InputError("bitmaps", len(self.bitmaps), f"0 or {len(self.queries)}: one entry a sequence")
        for of_heads in self.bitmaps:
            if len(of_heads) not in (0, 1, self.heads):
                raise InputError("bitmaps of a sequence", len(of_heads), f"0, 1 or {self.heads}, the heads")
            for rows in of_heads:
                lengths, letters = {len(row) for row in rows}, set().union(*rows)
                if len(lengths) != 1 or not letters or not letters <= {*"01"}:
                    raise InputError("bitmaps", rows, "rows of equal length of 0 and 1")

    @property
    def kv_group(self) -> int:
        """Query heads that share keys and values."""
        return self.heads // (self.kv_heads or self.heads)

    def bitmap(self, sequence: int, head: int) -> Bitmap | None:
        """Return the bitmap of a head, or None."""
        of_heads = self.bitmaps[sequence] if self.bitmaps else ()
        return of_heads[head % len(of_heads)] if of_heads else None


def bitmap_text(bits: NDArray[np.bool_]) -> Bitmap:
    """Write a bitmap ``[blocks of queries, tiles of keys]`` as text."""
    return tuple((row + np.uint8(ord("0"))).tobytes().decode() for row in bits.astype(np.uint8))


def bitmap_bits(text: Bitmap) -> NDArray[np.bool_]:
    """Parse the output of `bitmap_text`."""
    bits = np.frombuffer("".join(text).encode(), np.uint8) == ord("1")
    return bits.reshape(len(text), -1)


def size_in_memory(size: int) -> int:
    """Return the elements of a row of ``size`` with its zero padding, in whole units."""
    return -(-size // UNIT_ELEMENTS) * UNIT_ELEMENTS
