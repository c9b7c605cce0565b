"""Golden model of the fused attention engine, in integers, from ``docs/attention-specification.md``.

Integers are held in float64 wherever that is fast.  Every logit, product and partial sum is a multiple of a
power of two with fewer than 53 bits. So BLAS and floor are exact, and much faster than NumPy's integer
products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.attention.driver.formats import SCORE_FRACTION_BITS
from hw.attention.driver.integers import IntegerJob
from sim.golden.attention.formats import (
    MAXIMUM_OF_NONE,
    Arithmetic,
    alibi,
    capped,
    combined,
    probability_table,
    results,
    rounded_shift,
)
from sim.golden.products import serial_product

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Results = NDArray[np.int8] | NDArray[np.int16] | NDArray[np.uint16]

_BLOCK_SCORES = 2**16  # scores of a block of rows and a tile of keys: what the processor's cache holds well
_SUM_BITS, _OUTPUT_BITS = 17, 24  # widths of l, unsigned, and O, signed, beyond those of a probability
_HIDDEN = -(2.0**40)  # logit of a key that is not visible: below any other, and its u beyond every table


class _Stream:
    """Running maximum, sum and output of one stream for a block of rows."""

    def __init__(self, rows: int, value_size: int, arithmetic: Arithmetic) -> None:
        self.maximum = np.full(rows, MAXIMUM_OF_NONE, np.float64)
        self.total = np.zeros(rows)
        self.output = np.zeros((rows, value_size))
        self._table = probability_table(arithmetic.probability_bits, arithmetic.exp_segments)
        self._bits = arithmetic.probability_bits
        self._empty = True

    def take(self, t: Float, values: Float) -> None:
        """Merge a tile of logits ``t`` [rows, n], which is overwritten, and of values [n, dv]."""
        own = np.ceil(t.max(axis=1) * 2.0**-SCORE_FRACTION_BITS)
        maximum = np.maximum(self.maximum, own)
        rise = maximum - self.maximum
        self.maximum = maximum
        u = np.subtract((maximum * 2.0**SCORE_FRACTION_BITS)[:, None], t, out=t)
        p = np.take(
            self._table, u.astype(np.intp), out=u, mode="clip"
        )  # clip: the last entry is for all more
        risen = np.nonzero(rise)[0]
        if risen.size and not self._empty:
            shift = rise[risen].astype(np.int64)
            self.total[risen] = rounded_shift(self.total[risen].astype(np.int64), shift)
            self.output[risen] = rounded_shift(self.output[risen].astype(np.int64), shift[:, None])
        self._empty = False
        self.total += p.sum(axis=1)
        self.output += serial_product(p, values)
        self._check_widths()

    def _check_widths(self) -> None:
        """Check the running sums against the widths of the page: l unsigned, O signed."""
        if self.total.max() >= 2.0 ** (_SUM_BITS + self._bits):
            raise OverflowError("running sum l is wider than its register")
        if max(self.output.max(), -self.output.min() - 1) >= 2.0 ** (_OUTPUT_BITS + self._bits - 1):
            raise OverflowError("running output O is wider than its register")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rows:
    """Queries of the heads that share keys: position, visible range, tiles of the bitmap, slope of each."""

    q: Float
    position: Int
    first: Int
    last: Int
    bitmap_row: Int
    slope: Int

    def __getitem__(self, rows: slice) -> _Rows:
        return _Rows(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})


def _rows(job: IntegerJob, kv_head: int) -> _Rows:
    """Stack the query heads of a group: rows do not depend on each other."""
    (heads, queries, size), keys = job.q.shape, job.k.shape[1]
    group = heads // job.k.shape[0]
    own = slice(kv_head * group, (kv_head + 1) * group)
    first, last = job.mask.limits(queries, keys)
    index = np.arange(queries, dtype=np.int64)
    slopes = np.array((job.slopes or (0,) * heads)[own], np.int64)
    return _Rows(
        # Scaled here by an exact power of two and a whole number: the product with k is x before rounding.
        q=job.q[own].reshape(-1, size).astype(np.float64) * (job.scale.multiplier * 2.0**-job.scale.shift),
        position=np.tile(index + keys - queries, group),
        first=np.tile(first, group),
        last=np.tile(last, group),
        bitmap_row=np.tile(index // job.mask.tile_queries, group),
        slope=np.repeat(slopes, queries),
    )


def _logits(job: IntegerJob, rows: _Rows, keys: slice, key_rows: Float) -> Float:
    """Return t of ``rows`` and the keys of a tile; hidden keys have `_HIDDEN`."""
    t = serial_product(rows.q, key_rows[keys].T)
    t += 0.5
    np.floor(t, out=t)
    if job.q.shape[2] * 2.0**14 * job.scale.multiplier * 2.0**-job.scale.shift >= 2**23 - 1:
        np.clip(t, -(2.0**23), 2.0**23 - 1, out=t)
    index = np.arange(keys.start, keys.stop, keys.step or 1, dtype=np.int64)
    if job.cap:
        t = capped(t.astype(np.int64), job.cap).astype(np.float64)
    if job.slopes is not None:
        distance = rows.position[:, None] - index
        t = alibi(t.astype(np.int64), rows.slope[:, None], distance).astype(np.float64)
    if rows.first.max() > keys.start or rows.last.min() < keys.stop - 1:
        t[(index < rows.first[:, None]) | (index > rows.last[:, None])] = _HIDDEN
    if job.mask.bitmap is not None:
        seen = job.mask.bitmap[rows.bitmap_row[:, None], index // job.mask.tile_keys]
        t[~seen] = _HIDDEN
    return t


def _attention_rows(
    job: IntegerJob, rows: _Rows, key_rows: Float, values: Float, arithmetic: Arithmetic
) -> Results:
    """Compute a block of rows: all tiles that one of them sees, then the division."""
    count, size, span = len(rows.q), values.shape[1], arithmetic.tile_keys * arithmetic.streams
    streams = [_Stream(count, size, arithmetic) for _ in range(arithmetic.streams)]
    for first in range(int(rows.first.min()) // span * span, int(rows.last.max()) + 1, span):
        end = min(first + span, len(key_rows))
        for key, stream in zip(range(first, end), streams, strict=False):
            keys = slice(key, end, arithmetic.streams)
            stream.take(_logits(job, rows, keys, key_rows), values[keys])
    if arithmetic.streams == 1:
        output, total = streams[0].output.astype(np.int64), streams[0].total.astype(np.int64)
    else:
        output, total = combined(
            np.stack([stream.maximum for stream in streams]).astype(np.int64),
            np.stack([stream.output for stream in streams]).astype(np.int64),
            np.stack([stream.total for stream in streams]).astype(np.int64),
        )
    return results(output, total, job.output, arithmetic.probability_bits)


def attention_job(job: IntegerJob, arithmetic: Arithmetic) -> Results:
    """Attention of every head of a job, bit-exact with the gateware: ``[H, Nq, dv]`` of `Output.dtype`.

    A query that sees no key has zeros.
    """
    kv_heads, _, size = job.v.shape
    step = max(1, _BLOCK_SCORES // arithmetic.tile_keys)
    out = np.empty((kv_heads, job.q.shape[0] // kv_heads * job.q.shape[1], size), job.output.dtype)
    for kv_head in range(kv_heads):
        rows = _rows(job, kv_head)
        key_rows, values = job.k[kv_head].astype(np.float64), job.v[kv_head].astype(np.float64)
        for start in range(0, out.shape[1], step):
            block = slice(start, start + step)
            out[kv_head, block] = _attention_rows(job, rows[block], key_rows, values, arithmetic)
    return out.reshape(*job.q.shape[:2], size)
