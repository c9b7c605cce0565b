"""The attention engine's regression: which sizes, shapes and memories are co-simulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hw.attention.config import AttentionConfig
from sim.adapter import Case, Tensor

_SMALL = AttentionConfig(rows=4, head_dim=32, tile_keys=16, ports_per_stream=1)
_WIDE = AttentionConfig(rows=3, head_dim=64, tile_keys=64, ports_per_stream=2)
_ZYNQ = AttentionConfig(rows=2, head_dim=64, tile_keys=32, ports_per_stream=1)

#: name, heads, key heads, queries, keys: shapes at which a counter, tile or buffer is just full or just not.
_CORNERS = (
    ("one_token", 1, 1, 1, 1),
    ("one_key", 2, 2, 9, 1),
    ("one_query", 2, 1, 1, 50),
    ("tile_exactly", 1, 1, 4, 16),
    ("tile_and_one", 1, 1, 5, 17),
    ("tile_less_one", 3, 3, 3, 15),
    ("short_heads", 6, 2, 4, 2),
    ("grouped", 4, 2, 10, 40),
)
_RANDOM_IN_TEST = 10
_RANDOM_IN_SOAK = 100


def _tensors(rng: np.random.Generator, shape: tuple[int, int, int, int], size: int) -> dict[str, Tensor]:
    heads, kv_heads, queries, keys = shape
    spread = rng.choice([0.05, 1.0, 6.0])
    return {
        "q": rng.normal(size=(heads, queries, size)) * spread,
        "k": rng.normal(size=(kv_heads, keys, size)),
        "v": rng.normal(size=(kv_heads, keys, size)),
    }


def _extremes(sign: int, keys: int, size: int) -> dict[str, Tensor]:
    """Every product as large as it gets, and every tile's maximum above the one before."""
    k = np.full((1, keys, size), 127, np.int8)
    k[0, :, size // 2 :] = np.linspace(-128, 127, keys).astype(np.int8)[:, None]
    return {
        "q": np.full((1, 5, size), 127 if sign > 0 else -128, np.int8),
        "k": k,
        "v": np.full((1, keys, size), -128, np.int8),
        "q_scale": np.asarray(0.01),
        "k_scale": np.asarray(0.01),
        "v_scale": np.asarray(1.0),
    }


def _random_shape(rng: np.random.Generator) -> tuple[int, int, int, int]:
    kv_heads = int(rng.integers(1, 4))
    return (
        kv_heads * int(rng.integers(1, 4)),
        kv_heads,
        int(rng.integers(1, 40)),
        int(rng.choice([rng.integers(1, 200), 16 * rng.integers(1, 12)])),
    )


def attention_cases() -> Iterator[Case]:
    """Give corners, extremes, and random shapes under jitter; one small configuration serves most of them."""
    for name, *shape in _CORNERS:
        heads, kv_heads, queries, keys = shape
        rng = np.random.default_rng(keys)
        tensors = _tensors(rng, (heads, kv_heads, queries, keys), _SMALL.head_dim)
        yield Case(name=name, board="u55c", config=_SMALL, tensors=tensors, memory="fast")
    for sign in (1, -1):
        name = f"extremes_{'positive' if sign > 0 else 'negative'}"
        yield Case(
            name=name,
            board="u55c",
            config=_SMALL,
            tensors=_extremes(sign, 100, _SMALL.head_dim),
            memory="jitter",
        )
    for config, board in ((_WIDE, "u55c"), (_ZYNQ, "zcu104")):
        for memory in ("model", "fast", "jitter"):
            tensors = _tensors(np.random.default_rng(7), (2, 1, 7, 150), config.head_dim)
            yield Case(name=f"{board}_{memory}", board=board, config=config, tensors=tensors, memory=memory)
    for seed in range(_RANDOM_IN_SOAK):
        rng = np.random.default_rng(1000 + seed)
        yield Case(
            name=f"random_{seed}",
            board="u55c",
            config=_SMALL,
            tensors=_tensors(rng, _random_shape(rng), _SMALL.head_dim),
            memory=str(rng.choice(["jitter", "model"])),
            seed=seed,
            soak=seed >= _RANDOM_IN_TEST,
        )
