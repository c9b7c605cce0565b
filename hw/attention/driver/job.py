"""An attention launch as jobs of the engine, with the format of their results."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from hw.attention.config import AttentionConfig
from hw.attention.driver.division import Share, divide
from hw.attention.driver.formats import (
    Output,
    bfloat16_values,
    cap_multiplier,
    output_scaling,
    scaling,
    slope_multiplier,
)
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.modes import Floats, Sequence, mask_of
from hw.attention.driver.tensors import Inputs
from hw.attention.driver.workload import AttentionWorkload
from hw.launch import Tensor

_FRACTION_BITS = range(16)
#: The largest absolute value of a weighted mean of int8 values.
_MOST_STEPS = 128


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """One job of the engine: heads of one sequence that differ in their tensors only."""

    share: Share  #: Its sequence, heads, shapes and modes.
    tokens: Sequence  #: Of its sequence.
    factor: float  #: Real value of a step of the raw score: softmax scale times the scales of q and k.
    value_step: float  #: Real value of a step of v.
    integers: IntegerJob

    @property
    def place(self) -> tuple[slice, slice]:
        """Place of its results in those of the launch."""
        return self.share.heads, self.tokens.queries

    @property
    def output_step(self) -> float:
        """Real value of a step of the results; for bfloat16 their factor."""
        output = self.integers.output
        if output.kind == "int16":
            return self.value_step * 2.0**-output.fraction
        if output.kind == "bfloat16":
            return 1.0
        return float(self.value_step * 2.0 ** (output.shift - 17) / output.multiplier)


#: The largest absolute result of a job, in steps of its values; see `divide_launch`.
Largest = Callable[[Piece], float]


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchJobs:
    """One attention launch, quantized and divided."""

    inputs: Inputs
    workload: AttentionWorkload  #: The launch without its tensors.
    pieces: tuple[Piece, ...]  #: Jobs of the engine, in order.

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the results: ``[H, Nq, dv]``, dv as in memory."""
        return self.inputs.heads, self.inputs.q.shape[1], self.inputs.v.shape[2]

    @property
    def output_scale(self) -> Floats:
        """Real value of one step of the results of each head and channel: ``[H, dv]``."""
        steps = np.empty(self.inputs.heads)
        for piece in self.pieces:
            steps[piece.share.heads] = piece.output_step
        return self.inputs.channels * steps[:, None]

    def assembled(self, parts: Iterator[Tensor]) -> Tensor:
        """Assemble the results of all pieces: ``[H, Nq, dv]``."""
        found = list(parts)
        whole = np.empty(self.shape, found[0].dtype)
        for piece, part in zip(self.pieces, found, strict=True):
            whole[piece.place] = part
        return whole

    def real(self, integers: Tensor) -> Floats:
        """Convert results to real units."""
        kind = self.pieces[0].integers.output.kind
        values = bfloat16_values(integers) if kind == "bfloat16" else integers
        return np.asarray(values * self.output_scale[:, None], np.float64)


def divide_launch(
    inputs: Inputs, config: AttentionConfig, largest: Largest = lambda piece: _MOST_STEPS
) -> LaunchJobs:
    """Divide a launch into jobs, and choose the format of its results.

    ``largest`` is called only if the inputs leave the format open; by default results have room for any
    values. Raises `InputError` when scales are out of the range of the engine's arguments, or a bitmap does
    not fit.
    """
    workload = workload_of(inputs)
    pieces = list(_pieces(inputs, workload, config))
    fractions, scales = inputs.fraction, inputs.output_scale
    steps: dict[float, float] = {}  # the largest result, in real units, by the step of the values
    if {"int16": fractions, "int8": scales, "bfloat16": True}[config.output] is None:
        for piece in pieces:
            step = piece.value_step
            steps[step] = max(steps.get(step, 0.0), largest(piece) * step)
    finished = []
    for piece in pieces:
        head, step = piece.share.heads.start, piece.value_step
        if config.output == "int16":
            bits = _largest_fraction(steps[step] / step) if fractions is None else int(fractions[head])
            output = Output(fraction=bits)
        elif config.output == "bfloat16":
            output = output_scaling("bfloat16", step)
        else:
            own = max(steps.values()) / 127 or 1.0 if scales is None else float(scales[head])
            output = output_scaling("int8", step / own)
        finished.append(replace(piece, integers=replace(piece.integers, output=output)))
    return LaunchJobs(inputs=inputs, workload=workload, pieces=tuple(finished))


def _largest_fraction(largest: float) -> int:
    """Return the most fraction bits with which results of up to ``largest`` value steps fit int16."""
    return max(bits for bits in _FRACTION_BITS if bits == 0 or largest * 2**bits <= 2**15 - 2)


def _pieces(inputs: Inputs, workload: AttentionWorkload, config: AttentionConfig) -> Iterator[Piece]:
    """Return the jobs: the launch's shares with their tensors."""
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
            integers=IntegerJob(
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
    """Return a launch without its tensors."""
    return inputs.workload(inputs.q_scale, inputs.k_scale, inputs.v_scale)
