"""Errors of the attention engine's arithmetic against exact softmax on the same int8 inputs.

``python -m sim.golden.attention_accuracy`` prints the tables of ``docs/attention.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sim.golden.attention import GoldenJob, attention_job
from sim.golden.attention_float import attention_float64
from sim.golden.attention_formats import (
    Arithmetic,
    Output,
    OutputKind,
    bfloat16_values,
    cap_multiplier,
    output_scaling,
    scaling,
    slope_multiplier,
)
from sim.golden.attention_mask import Mask


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Random attention whose error is to be measured.

    Parameters
    ----------
    keys, queries, heads, head_dim
        Sizes; K and V have one head.
    spread
        Standard deviation of the logits: below 1 all keys weigh alike, from 4 on few keys decide.
    seed
        Of the normally distributed q, k and v.
    arithmetic, output
        Number formats.
    mask
        Visible keys.
    cap, slope
        Logit cap, and ALiBi slope of all heads, in natural units; None for none.
    """

    keys: int
    spread: float
    queries: int = 64
    heads: int = 1
    head_dim: int = 64
    seed: int = 0
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    output: OutputKind = "int16"
    mask: Mask | None = None
    cap: float | None = None
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
    exact = attention_float64(
        q,
        k,
        v,
        softmax_scale=softmax_scale * q_scale * k_scale,
        mask=trial.mask,
        cap=trial.cap,
        slopes=slopes,
    )
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
_SPREADS = (0.02, 1.0, 4.0, 8.0)
_SEEDS = 4


def worst(trial: Trial) -> float:
    """Give the largest relative RMS error over some draws."""
    return max(measured(replace(trial, seed=seed))[0] for seed in range(_SEEDS))


def tables() -> Iterator[str]:
    """Give the lines of the tables: relative RMS errors, the worst of some draws."""
    columns = [(keys, spread) for spread in _SPREADS for keys in _LENGTHS]
    names = [f"{spread:g}, {keys:,}" for keys, spread in columns]

    def line(name: str, **changes: object) -> str:
        trials = (Trial(keys=keys, spread=spread, **changes) for keys, spread in columns)  # type: ignore[arg-type]
        return f"| {name} | " + " | ".join(f"{worst(trial):.1e}" for trial in trials) + " |"

    yield "| B, segments | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    for bits in (8, 12, 16):
        for segments in (8, 16, 32):
            arithmetic = Arithmetic(probability_bits=bits, exp_segments=segments)
            yield line(f"{bits}, {segments}", arithmetic=arithmetic)
    yield ""
    yield "| 16, 16 and | " + " | ".join(names) + " |"
    yield "|---|" + "---|" * len(names)
    yield line("4 streams", arithmetic=Arithmetic(streams=4))
    yield line("16 streams", arithmetic=Arithmetic(streams=16))
    yield line("T = 16", arithmetic=Arithmetic(tile_keys=16))
    yield line("causal", mask=Mask(causal=True))
    yield line("window 100", mask=Mask(causal=True, window=100))
    yield line("cap 30", cap=30.0)
    yield line("cap 50", cap=50.0)
    yield line("slope 1/2", slope=0.5)
    yield line("slope 1/256", slope=1 / 256)
    yield line("int8", output="int8")
    yield line("bfloat16", output="bfloat16")


if __name__ == "__main__":
    for text in tables():
        print(text, flush=True)
