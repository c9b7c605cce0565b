"""Errors of the attention engine's arithmetic against exact softmax on the same int8 inputs.

``python -m sim.golden.attention.accuracy`` prints the tables of ``docs/attention.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.golden.attention.exact import attention_float64
from sim.golden.attention.formats import (
    EXP_SEGMENTS,
    MAX_KEYS,
    PROBABILITY_BITS,
    Arithmetic,
    Output,
    OutputKind,
    bfloat16_values,
    cap_multiplier,
    output_scaling,
    scaling,
    slope_multiplier,
)
from sim.golden.attention.mask import Mask
from sim.golden.attention.model import GoldenJob, attention_job


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Random attention whose error is to be measured; K and V have one head."""

    keys: int
    spread: float  #: Standard deviation of the logits: below 1 all keys weigh alike, from 4 on few decide.
    queries: int = 64
    heads: int = 1
    head_dim: int = 64
    seed: int = 0  #: Of the normally distributed q, k and v.
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    output: OutputKind = "int16"
    mask: Mask | None = None
    cap: float | None = None  #: Logit cap, and ALiBi slope of all heads, in natural units; None for none.
    slope: float | None = None


def quantized(
    rng: np.random.Generator, shape: tuple[int, ...], spread: float = 1.0
) -> tuple[NDArray[np.int8], float]:
    """Give normally distributed int8 and the real value of one step."""
    x = rng.normal(scale=spread, size=shape)
    step = float(np.abs(x).max()) / 127
    return np.rint(x / step).astype(np.int8), step


def measured(trial: Trial) -> tuple[float, float]:
    """Give the relative RMS error, and the largest error over the largest exact result."""
    rng = np.random.default_rng(trial.seed)
    size = trial.head_dim
    q, q_scale = quantized(rng, (trial.heads, trial.queries, size), trial.spread)
    k, k_scale = quantized(rng, (1, trial.keys, size))
    v, _ = quantized(rng, (1, trial.keys, size))
    softmax_scale = size**-0.5
    slopes = None if trial.slope is None else (trial.slope,) * trial.heads
    step = softmax_scale * q_scale * k_scale
    exact = attention_float64(q, k, v, softmax_scale=step, mask=trial.mask, cap=trial.cap, slopes=slopes)
    output, unit = _output(trial.output, float(np.abs(exact).max()))
    job = GoldenJob(
        q=q,
        k=k,
        v=v,
        scale=scaling(softmax_scale=softmax_scale, q_scale=q_scale, k_scale=k_scale, cap=trial.cap),
        output=output,
        mask=trial.mask or Mask(),
        cap=0 if trial.cap is None else cap_multiplier(trial.cap),
        slopes=None if slopes is None else tuple(slope_multiplier(slope) for slope in slopes),
    )
    integers = attention_job(job, trial.arithmetic)
    if trial.output == "bfloat16":
        difference = bfloat16_values(integers.view(np.uint16)) - exact
    else:
        difference = integers * unit - exact
    return (
        math.sqrt(float((difference**2).mean()) / float((exact**2).mean())),
        float(np.abs(difference).max() / np.abs(exact).max()),
    )


def _output(kind: OutputKind, largest: float) -> tuple[Output, float]:
    """Give the finest format that holds ``largest``, and the value of one step."""
    if kind == "int16":
        fraction = min(15, int(math.log2(32766 / largest)))
        return Output(fraction=fraction), 2.0**-fraction
    factor = 1.0 if kind == "bfloat16" else 127 / largest
    return output_scaling(kind, factor), 1 / factor


_LENGTHS = (1024, 8192)
_SPREADS = (0.02, 1.0, 2.0, 3.0, 6.0)
_SEEDS = 4


def worst(trial: Trial) -> float:
    """Give the largest relative RMS error over some draws."""
    return max(measured(replace(trial, seed=seed))[0] for seed in range(_SEEDS))


def tables() -> Iterator[str]:
    """Give the lines of the tables: relative RMS errors, the worst of some draws."""
    yield from _table(
        "B, segments",
        _LENGTHS,
        {
            f"{bits}, {segments}": {"arithmetic": Arithmetic(probability_bits=bits, exp_segments=segments)}
            for bits in PROBABILITY_BITS
            for segments in EXP_SEGMENTS
        },
    )
    yield ""
    fine = Arithmetic(probability_bits=20)
    yield from _table(
        "B = 20, 16 segments and",
        _LENGTHS,
        {
            "4 streams": {"arithmetic": replace(fine, streams=4)},
            "16 streams": {"arithmetic": replace(fine, streams=16)},
            "T = 16": {"arithmetic": replace(fine, tile_keys=16)},
            "causal": {"arithmetic": fine, "mask": Mask(causal=True)},
            "window of 100": {"arithmetic": fine, "mask": Mask(causal=True, window=100)},
            "cap 30": {"arithmetic": fine, "cap": 30.0},
            "cap 50": {"arithmetic": fine, "cap": 50.0},
            "slope 1/2": {"arithmetic": fine, "slope": 0.5},
            "slope 1/256": {"arithmetic": fine, "slope": 1 / 256},
            "int8": {"arithmetic": fine, "output": "int8"},
            "bfloat16": {"arithmetic": fine, "output": "bfloat16"},
        },
    )
    yield ""
    yield from _table(
        "B, segments",
        (MAX_KEYS,),
        {f"{bits}, 16": {"arithmetic": Arithmetic(probability_bits=bits)} for bits in PROBABILITY_BITS},
    )


def _table(title: str, lengths: Sequence[int], rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    columns = [(keys, spread) for spread in _SPREADS for keys in lengths]
    yield f"| {title} | " + " | ".join(f"{spread:g}, {keys:,}" for keys, spread in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for name, changes in rows.items():
        errors = (worst(Trial(keys=keys, spread=spread, **changes)) for keys, spread in columns)
        yield f"| {name} | " + " | ".join(f"{error:.1e}" for error in errors) + " |"


if __name__ == "__main__":
    for text in tables():
        print(text, flush=True)
