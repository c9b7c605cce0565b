"""An attention launch as jobs of the engine: which heads and sequences go together, in which format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.model.shapes import JobShape
from hw.errors import InputError
from sim.engines.attention.tensors import Inputs, Sequence
from sim.golden.attention.formats import (
    Output,
    bfloat16_values,
    cap_multiplier,
    output_scaling,
    scaling,
    slope_multiplier,
)
from sim.golden.attention.mask import Mask
from sim.golden.attention.model import GoldenJob, attention_float64
from sim.run.adapter import Tensor

Floats = NDArray[np.float64]

_FRACTION_BITS = range(16)


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """One job of the engine: heads of one sequence that have everything but their tensors in common."""

    sequence: int  #: Number of its sequence.
    tokens: Sequence
    #: Of the launch.
    heads: slice
    kv_heads: slice
    factor: float  #: Real value of a step of the raw score: softmax scale times the scales of q and k.
    value_step: float  #: Real value of a step of v.
    golden: GoldenJob  #: The job in integers.
    #: As in `Inputs`, of these heads.
    cap: float | None
    slopes: Floats | None
    pack: int  #: Query heads in a query tile.
    reuse_kv: bool  #: Its first K/V head is the last one of the job before.

    @property
    def place(self) -> tuple[slice, slice]:
        """Where its results are in those of the launch."""
        return self.heads, self.tokens.queries

    @property
    def kv_group(self) -> int:
        """Query heads of the job that share keys and values."""
        return len(self.golden.q) // len(self.golden.k)

    @property
    def shape(self) -> JobShape:
        """What of it decides cycles and bytes."""
        heads, queries, query_size = self.golden.q.shape
        _, keys, value_size = self.golden.v.shape
        return JobShape(
            queries=queries,
            keys=keys,
            heads=heads,
            kv_group=self.kv_group,
            pack=self.pack,
            query_size=query_size,
            value_size=value_size,
            causal=self.golden.mask.causal,
            window=self.golden.mask.window,
            bitmap=self.golden.mask.bitmap,
            slopes=self.golden.slopes is not None,
            reuse_kv=self.reuse_kv,
        )

    @property
    def output_step(self) -> float:
        """Real value of a step of the results; of bfloat16, what they are to be multiplied by."""
        output = self.golden.output
        if output.kind == "int16":
            return self.value_step * 2.0**-output.fraction
        if output.kind == "bfloat16":
            return 1.0
        return float(self.value_step * 2.0 ** (output.shift - 17) / output.multiplier)

    def exact(self) -> Floats:
        """Give float64 attention on the int8 inputs, in real units."""
        golden = self.golden
        slopes = None if self.slopes is None else self.slopes.tolist()
        units = attention_float64(
            golden.q,
            golden.k,
            golden.v,
            softmax_scale=self.factor,
            mask=golden.mask,
            cap=self.cap,
            slopes=slopes,
        )
        return units * self.value_step


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionJob:
    """One attention launch, quantized."""

    inputs: Inputs
    pieces: tuple[Piece, ...]  #: Jobs of the engine, in order.
    #: Float64 attention on the int8 inputs, in real units, ``[H, Nq, dv]``: the reference of the errors.
    exact: Floats

    @property
    def output_scale(self) -> Floats:
        """Real value of one step of the results of each head."""
        scale = np.empty(self.inputs.heads)
        for piece in self.pieces:
            scale[piece.heads] = piece.output_step
        return scale

    def assembled(self, parts: Iterator[Tensor]) -> Tensor:
        """Put the results of all pieces into their places: ``[H, Nq, dv]``."""
        found = list(parts)
        whole = np.empty(self.exact.shape, found[0].dtype)
        for piece, part in zip(self.pieces, found, strict=True):
            whole[piece.place] = part
        return whole

    def real(self, integers: Tensor) -> Floats:
        """Give results in real units."""
        kind = self.pieces[0].golden.output.kind
        values = bfloat16_values(integers) if kind == "bfloat16" else integers
        return np.asarray(values * self.output_scale[:, None, None], np.float64)

    def exact_on_given(self) -> Floats | None:
        """Give float64 attention on the user's own floating-point tensors, or None."""
        inputs = self.inputs
        if inputs.real is None:
            return None
        q, k, v = inputs.real
        out = np.empty(self.exact.shape)
        for piece in self.pieces:
            out[piece.place] = attention_float64(
                q[piece.heads, piece.tokens.queries],
                k[piece.kv_heads, piece.tokens.keys],
                v[piece.kv_heads, piece.tokens.keys],
                softmax_scale=float(inputs.softmax_scale[piece.heads.start]),
                mask=piece.golden.mask,
                cap=piece.cap,
                slopes=None if piece.slopes is None else piece.slopes.tolist(),
            )
        return out


def make_job(inputs: Inputs, config: AttentionConfig) -> AttentionJob:
    """Divide the launch into jobs, and choose the format of its results.

    Raises
    ------
    InputError
        When scales leave the range of the engine's arguments, or a bitmap does not fit.
    """
    pieces = list(_pieces(inputs, config))
    exact = np.empty((inputs.heads, inputs.q.shape[1], inputs.v.shape[2]))
    for piece in pieces:
        exact[piece.place] = piece.exact()
    largest = {
        piece.value_step: max(
            float(np.abs(exact[other.place]).max())
            for other in pieces
            if other.value_step == piece.value_step
        )
        for piece in pieces
    }
    whole = max(largest.values())
    finished = []
    for piece in pieces:
        head = piece.heads.start
        if config.output == "int16":
            fraction = _largest_fraction(largest[piece.value_step] / piece.value_step)
            output = Output(fraction=fraction if inputs.fraction is None else int(inputs.fraction[head]))
        elif config.output == "bfloat16":
            output = output_scaling("bfloat16", piece.value_step)
        else:
            step = whole / 127 or 1.0
            if inputs.output_scale is not None:
                step = float(inputs.output_scale[head])
            output = output_scaling("int8", piece.value_step / step)
        finished.append(replace(piece, golden=replace(piece.golden, output=output)))
    return AttentionJob(inputs=inputs, pieces=tuple(finished), exact=exact)


def _largest_fraction(largest: float) -> int:
    """Give the most fraction bits with which an output of ``largest`` value steps does not saturate int16."""
    return max(bits for bits in _FRACTION_BITS if bits == 0 or largest * 2**bits <= 2**15 - 2)


def _pieces(inputs: Inputs, config: AttentionConfig) -> Iterator[Piece]:
    """Give the jobs: sequence by sequence, in each as many heads together as have equal settings."""
    slopes = None if inputs.slopes is None else tuple(slope_multiplier(float(a)) for a in inputs.slopes)
    cap = 0 if inputs.cap is None else cap_multiplier(inputs.cap)
    scale_of = cache(lambda factor: scaling(softmax_scale=factor, q_scale=1.0, k_scale=1.0, cap=inputs.cap))
    for number, tokens in enumerate(inputs.sequences):
        last_kv = -1
        for heads in _runs(inputs, number):
            kv_heads = slice(heads.start // inputs.group, (heads.stop - 1) // inputs.group + 1)
            kv_group = min(inputs.group, heads.stop - heads.start)
            bitmap = inputs.bitmaps[number]
            own = None if bitmap is None else bitmap[heads.start % len(bitmap)]
            pack = _pack(inputs, config, tokens, kv_group, sparse=own is not None)
            factor = _factor(inputs, heads.start)
            yield Piece(
                sequence=number,
                tokens=tokens,
                heads=heads,
                kv_heads=kv_heads,
                factor=factor,
                value_step=float(inputs.v_scale[kv_heads.start]),
                golden=GoldenJob(
                    q=inputs.q[heads, tokens.queries],
                    k=inputs.k[kv_heads, tokens.keys],
                    v=inputs.v[kv_heads, tokens.keys],
                    scale=scale_of(factor),
                    output=Output(),
                    mask=Mask(
                        causal=inputs.causal,
                        window=inputs.window,
                        bitmap=None if own is None else _expanded(inputs, config, tokens, own, pack),
                        tile_queries=config.rows // pack,
                        tile_keys=config.tile_keys,
                    ),
                    cap=cap,
                    slopes=None if slopes is None else slopes[heads],
                ),
                cap=inputs.cap,
                slopes=None if inputs.slopes is None else inputs.slopes[heads],
                pack=pack,
                reuse_kv=kv_heads.start == last_kv,
            )
            last_kv = kv_heads.stop - 1


def _factor(inputs: Inputs, head: int) -> float:
    scales = inputs.softmax_scale[head], inputs.q_scale[head], inputs.k_scale[head // inputs.group]
    return float(np.prod(scales))


def _runs(inputs: Inputs, sequence: int) -> Iterator[slice]:
    """Give runs of heads with equal settings: whole groups together, or heads of one group."""
    bitmap = inputs.bitmaps[sequence]

    def settings(head: int) -> tuple[object, ...]:
        return (
            _factor(inputs, head),
            float(inputs.v_scale[head // inputs.group]),
            None if inputs.fraction is None else int(inputs.fraction[head]),
            None if inputs.output_scale is None else float(inputs.output_scale[head]),
            None if bitmap is None else bitmap[head % len(bitmap)].tobytes(),
        )

    group = inputs.group
    runs: list[slice] = []
    for first in range(0, inputs.heads, group):
        heads = range(first, first + group)
        starts = [h for h in heads if h == first or settings(h) != settings(h - 1)]
        before = runs[-1] if runs else None
        whole = before is not None and before.start % group == 0 and before.stop == first
        if len(starts) == 1 and whole and before is not None and settings(first) == settings(before.start):
            runs[-1] = slice(before.start, first + group)
        else:
            runs += [slice(a, b) for a, b in zip(starts, [*starts[1:], first + group], strict=True)]
    return iter(runs)


def _pack(inputs: Inputs, config: AttentionConfig, tokens: Sequence, kv_group: int, *, sparse: bool) -> int:
    """Give the heads of a query tile: those with which the rows meet the fewest keys in all."""
    if inputs.pack:
        return min(inputs.pack, kv_group)
    if sparse:
        return _sparse_pack(inputs, config, kv_group)
    queries, keys = tokens.query_count, tokens.key_count

    def met(pack: int) -> int:
        block = config.rows // pack
        first = np.arange(0, queries, block)
        last = np.minimum(first + block, queries) + keys - queries
        end = np.clip(last, 0, keys) if inputs.causal else np.full(len(first), keys)
        begin = np.zeros(len(first), np.int64)
        if inputs.window:
            begin = np.maximum(first + keys - queries - inputs.window + 1, 0) // config.tile_keys
        return -(-kv_group // pack) * int(np.maximum(end - begin * config.tile_keys, 1).sum())

    return min(range(1, min(kv_group, config.rows) + 1), key=lambda pack: (met(pack), pack))


def _sparse_pack(inputs: Inputs, config: AttentionConfig, kv_group: int) -> int:
    """Give the most heads with which a block of the engine lies within a block of the bitmap."""
    for pack in range(min(kv_group, config.rows), 1, -1):
        if inputs.bitmap_queries and inputs.bitmap_queries % (config.rows // pack) == 0:
            return pack
    return 1


def _expanded(
    inputs: Inputs, config: AttentionConfig, tokens: Sequence, bitmap: NDArray[np.bool_], pack: int
) -> NDArray[np.bool_]:
    """Give the bitmap in blocks of the engine."""
    block, tile = config.rows // pack, config.tile_keys
    by_queries, by_keys = inputs.bitmap_queries or block, inputs.bitmap_keys or tile
    for name, size, unit in (("bitmap_queries", by_queries, block), ("bitmap_keys", by_keys, tile)):
        if size % unit:
            raise InputError(name, size, f"a multiple of {unit}, the block of the engine")
    queries, keys = tokens.query_count, tokens.key_count
    legal = (-(-queries // by_queries), -(-keys // by_keys))
    if bitmap.shape != legal:
        what = f"[{legal[0]}, {legal[1]}]: blocks of {by_queries} queries and {by_keys} keys"
        raise InputError("shape of the bitmap", bitmap.shape, what)
    rows = np.arange(-(-queries // block)) * block // by_queries
    columns = np.arange(-(-keys // tile)) * tile // by_keys
    return bitmap[np.ix_(rows, columns)]


def distance(o: Floats, exact: Floats, inputs: str) -> dict[str, float]:
    """Give the relative RMS error, and the largest error over the largest output."""
    rms = math.sqrt(float((exact**2).mean()))
    largest = float(np.abs(exact).max())
    return {
        f"relative_rms_error_{inputs}": math.sqrt(float(((o - exact) ** 2).mean())) / rms if rms else 0.0,
        f"relative_max_error_{inputs}": float(np.abs(o - exact).max()) / largest if largest else 0.0,
    }
