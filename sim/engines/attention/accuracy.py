"""Errors of the attention engine's arithmetic against exact softmax on the same int8 inputs.

``python -m sim.engines.attention.accuracy`` prints the tables of ``docs/attention-figures.md``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import MAX_KEYS, AttentionConfig
from sim.engines.attention.adapter import ADAPTER
from sim.engines.attention.job import distance
from sim.golden.attention.formats import EXP_SEGMENTS, PROBABILITY_BITS


def quantized(
    rng: np.random.Generator, shape: tuple[int, ...], spread: float = 1.0
) -> tuple[NDArray[np.int8], float]:
    """Return normally distributed int8 and the real value of one step."""
    x = rng.normal(scale=spread, size=shape)
    step = float(np.abs(x).max()) / 127
    return np.rint(x / step).astype(np.int8), step


def measured(
    *,
    keys: int,
    spread: float,
    queries: int = 64,
    heads: int = 1,
    size: int = 64,
    seed: int = 0,
    sink: float = 0.0,
    tensors: Mapping[str, Any] | None = None,
    **config: Any,
) -> tuple[float, float]:
    """Return the relative RMS error, and the largest error over the largest exact result.

    ``queries`` of all heads meet keys and values of one head, drawn by ``seed``.  ``spread`` is the standard
    deviation of the logits: below 1 all keys weigh alike, from 4 on few keys dominate.  With ``sink`` the
    first key is an attention sink. Its value is 0, and its logit exceeds the mean of the others by ``sink``
    for each query. ``tensors`` are further tensors of the launch, ``config`` overrides the engine's default.
    """
    rng = np.random.default_rng(seed)
    given = {name: np.asarray(value) for name, value in (tensors or {}).items()}
    q, q_scale = quantized(rng, (heads, queries, size), spread)
    k, k_scale = quantized(rng, (1, keys, size))
    v, _ = quantized(rng, (1, keys, size))
    if sink:
        # A quarter of the elements is the sink's alone.
        own = size // 4
        q[:, :, :own], k[:, :, :own], k[:, 0], v[:, 0] = 127, 0, 0, 0
        k[:, 0, :own] = round(sink * size**0.5 / (own * 127 * q_scale * k_scale))
    given |= {"q": q, "k": k, "v": v}
    given |= {"q_scale": np.asarray(q_scale), "k_scale": np.asarray(k_scale), "v_scale": np.asarray(1.0)}
    shape = AttentionConfig(
        rows=16, merge_lanes=8, logit_cap="logit_cap" in given, alibi="alibi_slopes" in given, **config
    )
    job = ADAPTER.job(given, shape)
    rms, largest = distance(job.real(ADAPTER.golden(job, shape)["o"]), job.exact, "").values()
    return rms, largest


def quantization_error(*, kind: str, spread: float, seed: int, per_channel: bool) -> float:
    """Return the relative RMS error against exact attention on floating-point tensors.

    4 heads of 512 queries, as many keys and d = 64, drawn by ``seed``; ``spread`` is the standard deviation
    of the logits.  With ``kind`` "normal" all elements have one size.  With "channels" the channels of each
    head differ by normal factors of e, those of values by their roots.  With "off centre" the keys of each
    channel lie around a mean, 4 times as far from 0 as they are from it.
    """
    rng = np.random.default_rng(seed)
    q, k, v = rng.normal(size=(3, 4, 512, 64))
    if kind == "channels":
        k *= np.exp(rng.normal(size=(4, 1, 64)))
        v *= np.exp(rng.normal(size=(4, 1, 64)) / 2)
    if kind == "off centre":
        k += 4 * rng.normal(size=(4, 1, 64))
    logits = np.einsum("hqd,hkd->hqk", q, k - k.mean(1, keepdims=True)) / 8
    tensors = {"q": q * (spread / logits.std()), "k": k, "v": v, "per_channel": np.asarray(per_channel)}
    shape = AttentionConfig(rows=16, merge_lanes=8)
    job = ADAPTER.job(tensors, shape)
    return ADAPTER.errors(job, shape, ADAPTER.golden(job, shape))["relative_rms_error_given_inputs"]


_LENGTHS = (1024, 8192)
_SPREADS = (0.02, 1.0, 2.0, 3.0, 6.0)
_SEEDS = 4
#: Kinds of tensors, see `quantization_error`.
KINDS = ("normal", "channels", "off centre")
#: Leads of an attention sink, in natural units.
_LEADS = (6, 8, 10, 11, 12, 13, 14)


def tables() -> Iterator[str]:
    """Return the lines of the tables: relative RMS errors, the worst of some draws."""
    formats = {
        f"{bits}, {segments}": {"probability_bits": bits, "exp_segments": segments}
        for bits in PROBABILITY_BITS
        for segments in EXP_SEGMENTS
    }
    yield from _table("B, segments", _LENGTHS, formats)
    yield ""
    modes: dict[str, dict[str, Any]] = {
        "4 streams": {"streams": 4},
        "16 streams": {"streams": 16},
        "T = 16": {"tile_keys": 16},
        "causal": {"tensors": {"causal": True}},
        "window of 100": {"tensors": {"causal": True, "window": 100}},
        "cap 30": {"tensors": {"logit_cap": 30.0}},
        "cap 50": {"tensors": {"logit_cap": 50.0}},
        "slope 1/2": {"tensors": {"alibi_slopes": 0.5}},
        "slope 1/256": {"tensors": {"alibi_slopes": 1 / 256}},
        "int8": {"output": "int8"},
        "bfloat16": {"output": "bfloat16"},
    }
    yield from _table("B = 20, 16 segments and", _LENGTHS, modes)
    yield ""
    yield from _table(
        "B, segments", (MAX_KEYS,), {name: formats[name] for name in formats if name[-2:] == "16"}
    )
    yield ""
    sinks = {
        f"{bits}, {streams}": {"probability_bits": bits, "streams": streams}
        for bits in (16, 20)
        for streams in (1, 4)
    }
    leads = {f"{lead}": {"keys": _LENGTHS[0], "spread": 1.0, "sink": lead} for lead in _LEADS}
    yield from _errors("B, S; a sink", leads, sinks)
    yield ""
    drawn = {
        f"{kind}, {spread:g}": {"kind": kind, "spread": spread} for kind in KINDS for spread in (1.0, 3.0)
    }
    chosen = {"a step for each tensor": {"per_channel": False}, "`per_channel`": {"per_channel": True}}
    yield from _errors("int8", drawn, chosen, of=quantization_error)


def _table(title: str, lengths: Sequence[int], rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    columns = {
        f"{spread:g}, {keys:,}": {"keys": keys, "spread": spread} for spread in _SPREADS for keys in lengths
    }
    return _errors(title, columns, rows)


def _rms(**given: Any) -> float:
    return measured(**given)[0]


def _errors(
    title: str,
    columns: Mapping[str, Mapping[str, Any]],
    rows: Mapping[str, Mapping[str, Any]],
    *,
    of: Callable[..., float] = _rms,
) -> Iterator[str]:
    yield f"| {title} | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for name, changes in rows.items():
        errors = (
            max(of(seed=seed, **column, **changes) for seed in range(_SEEDS)) for column in columns.values()
        )
        yield f"| {name} | " + " | ".join(f"{error:.1e}" for error in errors) + " |"


if __name__ == "__main__":
    for text in tables():
        print(text, flush=True)
