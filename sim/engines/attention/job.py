"""An attention launch as jobs of the engine: which heads and sequences go together, in which format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.driver.division import Share, divide
from hw.attention.driver.workload import AttentionWorkload
from hw.launch import Tensor
from sim.engines.attention.modes import Sequence, mask_of
from sim.engines.attention.tensors import Inputs
from sim.golden.attention.exact import attention_float64
from sim.golden.attention.formats import (
    Output,
    bfloat16_values,
    cap_multiplier,
    output_scaling,
    scaling,
    slope_multiplier,
)
from sim.golden.attention.model import GoldenJob

Floats = NDArray[np.float64]

_FRACTION_BITS = range(16)
#: What no weighted mean of int8 values exceeds.
_MOST_STEPS = 128


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """One job of the engine: heads of one sequence that have everything but their tensors in common."""

    share: Share  #: Its sequence, heads, shapes and modes.
    tokens: Sequence  #: Of its sequence.
    factor: float  #: Real value of a step of the raw score: softmax scale times the scales of q and k.
    value_step: float  #: Real value of a step of v.
    golden: GoldenJob  #: The job in integers.

    @property
    def place(self) -> tuple[slice, slice]:
        """Where its results are in those of the launch."""
        return self.share.heads, self.tokens.queries

    @property
    def output_step(self) -> float:
        """Real value of a step of the results; of bfloat16, what they are to be multiplied by."""
        output = self.golden.output
        if output.kind == "int16":
            return self.value_step * 2.0**-output.fraction
        if output.kind == "bfloat16":
            return 1.0
        return float(self.value_step * 2.0 ** (output.shift - 17) / output.multiplier)

    def exact(self, inputs: Inputs, q: Tensor, k: Tensor, v: Tensor, softmax_scale: float) -> Floats:
        """Give float64 attention of a launch's q, k and v at its place."""
        shared, keys = self.share.kv_heads, self.tokens.keys
        slopes = None if inputs.slopes is None else inputs.slopes[self.share.heads].tolist()
        return attention_float64(
            q[self.place],
            k[shared, keys],
            v[shared, keys],
            softmax_scale=softmax_scale,
            mask=self.golden.mask,
            cap=inputs.cap,
            slopes=slopes,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionJob:
    """One attention launch, quantized."""

    inputs: Inputs
    workload: AttentionWorkload  #: The launch without its tensors.
    pieces: tuple[Piece, ...]  #: Jobs of the engine, in order.
    #: Float64 attention on the int8 inputs, in real units, ``[H, Nq, dv]``: the reference of the errors, if
    #: there are to be any.
    exact: Floats

    @property
    def output_scale(self) -> Floats:
        """Real value of one step of the results of each head and channel: ``[H, dv]``."""
        steps = np.empty(self.inputs.heads)
        for piece in self.pieces:
            steps[piece.share.heads] = piece.output_step
        return self.inputs.channels * steps[:, None]

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
        return np.asarray(values * self.output_scale[:, None], np.float64)

    def exact_on_given(self) -> Floats | None:
        """Give float64 attention on the user's own floating-point tensors, or None."""
        inputs = self.inputs
        if inputs.real is None:
            return None
        scales = [float(inputs.softmax_scale[piece.share.heads.start]) for piece in self.pieces]
        return self.assembled(
            piece.exact(inputs, *inputs.real, scale) for piece, scale in zip(self.pieces, scales, strict=True)
        )


def make_job(inputs: Inputs, config: AttentionConfig, *, exact: bool = True) -> AttentionJob:
    """Divide the launch into jobs, and choose the format of its results: without ``exact`` attention one with
    room for any.

    Raises `InputError` when scales leave the range of the engine's arguments, or a bitmap does not fit.
    """
    workload = workload_of(inputs)
    pieces = list(_pieces(inputs, workload, config))
    reference = np.zeros((inputs.heads, inputs.q.shape[1], inputs.v.shape[2]))
    largest: dict[float, float] = {}
    for piece in pieces:
        step = piece.value_step
        most = _MOST_STEPS * step
        if exact:
            own = piece.exact(inputs, inputs.q, inputs.k, inputs.v, piece.factor) * step
            reference[piece.place] = own * inputs.channels[piece.share.heads, None]
            most = float(np.abs(own).max())
        largest[step] = max(largest.get(step, 0.0), most)
    whole = max(largest.values())
    finished = []
    for piece in pieces:
        head = piece.share.heads.start
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
    return AttentionJob(inputs=inputs, workload=workload, pieces=tuple(finished), exact=reference)


def _largest_fraction(largest: float) -> int:
    """Give the most fraction bits with which an output of ``largest`` value steps does not saturate int16."""
    return max(bits for bits in _FRACTION_BITS if bits == 0 or largest * 2**bits <= 2**15 - 2)


def _pieces(inputs: Inputs, workload: AttentionWorkload, config: AttentionConfig) -> Iterator[Piece]:
    """Give the jobs: the launch's shares with their tensors."""
    slopes = None if inputs.slopes is None else tuple(slope_multiplier(float(a)) for a in inputs.slopes)
    cap = 0 if inputs.cap is None else cap_multiplier(inputs.cap)
    scale_of = cache(lambda factor: scaling(softmax_scale=factor, q_scale=1.0, k_scale=1.0, cap=inputs.cap))
    for share in divide(workload, config):
        heads, kv_heads = share.heads, share.kv_heads
        tokens = inputs.sequences[share.sequence]
        factor = inputs.factor(heads.start, inputs.q_scale, inputs.k_scale)
        yield Piece(
            share=share,
            tokens=tokens,
            factor=factor,
            value_step=float(inputs.v_scale[kv_heads.start]),
            golden=GoldenJob(
                q=inputs.q[heads, tokens.queries],
                k=inputs.k[kv_heads, tokens.keys],
                v=inputs.v[kv_heads, tokens.keys],
                scale=scale_of(factor),
                output=Output(),
                mask=mask_of(share.shape, config),
                cap=cap,
                slopes=None if slopes is None else slopes[heads],
            ),
        )


def workload_of(inputs: Inputs) -> AttentionWorkload:
    """Give a launch without its tensors."""
    return inputs.workload(inputs.q_scale, inputs.k_scale, inputs.v_scale)


def distance(o: Floats, exact: Floats, inputs: str) -> dict[str, float]:
    """Give the relative RMS error, and the largest error over the largest output."""
    rms = math.sqrt(float((exact**2).mean()))
    largest = float(np.abs(exact).max())
    return {
        f"relative_rms_error_{inputs}": math.sqrt(float(((o - exact) ** 2).mean())) / rms if rms else 0.0,
        f"relative_max_error_{inputs}": float(np.abs(o - exact).max()) / largest if largest else 0.0,
    }
