"""The attention engine's regression: the sizes, shapes, modes and memories that are co-simulated."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.launch import Tensor
from sim.engines.attention.drawn import into_pages
from sim.run.adapter import Case

#: All options, at a size that builds in seconds: the simulator of `make test`.
SMALL = AttentionConfig(
    rows=4, lanes=16, folds=3, tile_keys=16, streams=2, ports_per_stream=2, result_ports=2, merge_lanes=2,
    cached_keys=64, logit_cap=True, alibi=True, paged=True, decode=True,
)  # fmt: skip
#: Board and configuration of the random cases; all but the first are built in the soak only.
CONFIGS = (
    ("u55c", SMALL),
    (
        "u55c",
        AttentionConfig(
            rows=3, lanes=16, folds=3, tile_keys=16, streams=2, ports_per_stream=2, result_ports=2,
            merge_lanes=2, cached_keys=64, logit_cap=True, alibi=True, paged=True,
        ),
    ),
    (
        "u55c",
        AttentionConfig(
            rows=4, lanes=32, folds=2, tile_keys=16, ports_per_stream=1, merge_lanes=4, cached_keys=64,
            probability_bits=16, exp_segments=8, output="bfloat16",
        ),
    ),
    (
        "u55c",
        AttentionConfig(
            rows=2, lanes=32, folds=1, tile_keys=32, streams=4, ports_per_stream=1, merge_lanes=1,
            cached_keys=0, probability_bits=12, exp_segments=32, output="int8", alibi=True,
        ),
    ),
    (
        "zcu104",
        AttentionConfig(
            rows=5, lanes=48, folds=2, tile_keys=32, ports_per_stream=1, merge_lanes=4, cached_keys=128,
            probability_bits=8, output="int8", logit_cap=True,
        ),
    ),
    (
        "u55c",
        AttentionConfig(
            rows=6, lanes=64, folds=1, tile_keys=64, ports_per_stream=4, result_ports=4, port_bits=512,
            merge_lanes=8, cached_keys=256,
        ),
    ),
    (
        "u55c",
        AttentionConfig(
            rows=4, lanes=32, folds=2, tile_keys=32, streams=2, ports_per_stream=2, result_ports=2,
            port_bits=256, merge_lanes=4, cached_keys=128, probability_bits=16, output="int8",
            logit_cap=True, alibi=True, paged=True, decode=True,
        ),
    ),
)  # fmt: skip
#: Random launches of the first configuration in `make test`, without a reset between some of them, and of
#: each configuration in the soak.
_IN_TEST, _IN_SOAK = 3, 20
#: name, heads, key heads, queries, keys, sizes of keys and values: shapes that just fill, or just miss, a
#: counter, tile, buffer or row.
_CORNERS = (
    ("one_token", 1, 1, 1, 1, 32, 32),
    ("one_key", 2, 2, 9, 1, 32, 32),
    ("one_query", 2, 1, 1, 50, 32, 32),
    ("tile_exactly", 1, 1, 4, 16, 32, 32),
    ("tile_and_one", 1, 1, 5, 17, 32, 32),
    ("tile_less_one", 3, 3, 3, 15, 32, 32),
    ("short_heads", 6, 2, 4, 2, 32, 32),
    ("grouped", 4, 2, 10, 40, 23, 40),
)
_SPREADS = (0.05, 1.0, 6.0)


def attention_cases() -> Iterator[Case]:
    """Return corners, extremes, pages, decoding, and random launches of all modes, on few configurations."""
    for name, heads, kv_heads, queries, keys, *sizes in _CORNERS:
        rng = np.random.default_rng(keys)
        tensors = _tensors(rng, heads, kv_heads, queries, keys, *sizes)
        yield Case(name=name, board="u55c", config=SMALL, tensors=tensors, memory="fast")
    for sign in (1, -1):
        name = f"extremes_{'positive' if sign > 0 else 'negative'}"
        tensors = _extremes(sign, 100, SMALL.lanes)
        yield Case(name=name, board="u55c", config=SMALL, tensors=tensors, memory="jitter")
    for name, tensors in _paged().items():
        yield Case(name=f"paged_{name}", board="u55c", config=SMALL, tensors=tensors, memory="model")
    for name, tensors in _decode().items():
        yield Case(name=f"decode_{name}", board="u55c", config=SMALL, tensors=tensors, memory="model")
    for number, (board, config) in enumerate(CONFIGS):
        for seed in range(_IN_SOAK):
            rng = np.random.default_rng([number, seed])
            yield Case(
                name=f"random_{number}_{seed}",
                board=board,
                config=config,
                tensors=random_tensors(rng, config),
                memory=("jitter", "model", "fast", "model")[seed % 4],
                seed=seed,
                soak=number > 0 or seed >= _IN_TEST,
            )


def random_tensors(rng: np.random.Generator, config: AttentionConfig) -> dict[str, Tensor]:
    """Draw a launch of any mode of the configuration, of some thousand cycles."""
    group = int(rng.choice([1, 1, 2, 3, 4]))
    kv_heads = int(rng.integers(1, 3))
    pack = int(rng.integers(1, min(group, config.rows) + 1))
    count = int(rng.choice([1, 1, 2, 4]))
    most = 5 * config.tile_span // count
    keys = rng.integers(1, most + 1, count)
    queries = rng.integers(1, 4 * config.rows + 1, count)
    if rng.random() < 0.3:
        queries = keys = np.minimum(queries, keys)
    if rng.random() < 0.2:
        queries = np.ones_like(queries)  # as in decoding
    if config.decodes and rng.random() < 0.7:
        # Few queries on many keys, without pages and bitmaps, which jobs that decode do not support.
        some = rng.random(count) < 0.7
        queries = np.where(some, rng.integers(1, 4, count), queries)
        keys = np.where(some, rng.integers(most, 8 * most, count), keys)
        config = replace(config, paged=False)
        tensors = tensors_of(
            rng, config, group=group, kv_heads=kv_heads, pack=pack, queries=queries, keys=keys
        )
        return {name: tensor for name, tensor in tensors.items() if not name.startswith("bitmap")}
    return tensors_of(rng, config, group=group, kv_heads=kv_heads, pack=pack, queries=queries, keys=keys)


def tensors_of(
    rng: np.random.Generator,
    config: AttentionConfig,
    *,
    group: int,
    kv_heads: int,
    pack: int,
    queries: NDArray[np.int_],
    keys: NDArray[np.int_],
) -> dict[str, Tensor]:
    """Draw sizes, modes, formats and tensors of a launch of one or more sequences."""
    heads = group * kv_heads
    query_size, value_size = (16 * int(rng.integers(1, config.max_head_dim // 16 + 1)) for _ in range(2))
    tensors = _tensors(rng, heads, kv_heads, int(queries.sum()), int(keys.sum()), query_size, value_size)
    if len(queries) > 1:
        tensors |= {"query_lengths": queries, "key_lengths": keys}
    tensors |= _modes(rng, config, queries, keys, pack)
    # Heads of one tile share a format, and a bitmap fits tiles of one height.
    alike = pack > 1 and "bitmap_queries" in tensors
    tensors |= _formats(rng, config, 1 if alike else heads, kv_heads, query_size)
    if config.alibi and rng.random() < 0.6:
        tensors["alibi_slopes"] = 2.0 ** -rng.uniform(0, 8, heads)
    if config.paged and rng.random() < 0.4:
        page_keys = config.tile_span * int(rng.choice([1, 1, 2, 8]))
        tensors = into_pages(tensors, page_keys, seed=int(rng.integers(1000)))
    return tensors


def _modes(
    rng: np.random.Generator, config: AttentionConfig, queries: Any, keys: Any, pack: int
) -> dict[str, Tensor]:
    """Draw causal, window, bitmap and pack."""
    modes: dict[str, Tensor] = {}
    if rng.random() < 0.5:
        modes["causal"] = np.asarray(True)
    if rng.random() < 0.4:
        modes["window"] = np.asarray(rng.integers(1, int(keys.max()) + 3))
    if rng.random() < 0.5:
        modes["pack"] = np.asarray(pack)
    if rng.random() < 0.4:
        modes["pack"] = np.asarray(pack)
        by_keys = config.tile_span * int(rng.integers(1, 3))
        by_queries = config.rows // pack * int(rng.integers(1, 3))
        modes |= {"bitmap_keys": np.asarray(by_keys), "bitmap_queries": np.asarray(by_queries)}
        for n, (some_queries, some_keys) in enumerate(zip(queries, keys, strict=True)):
            shape = (-(-int(some_queries) // by_queries), -(-int(some_keys) // by_keys))
            bitmap = rng.random(shape) < rng.choice([0.0, 0.3, 0.8])
            modes["bitmap" if len(queries) == 1 else f"bitmap_{n}"] = bitmap
    return modes


def _formats(
    rng: np.random.Generator, config: AttentionConfig, heads: int, kv_heads: int, size: int
) -> dict[str, Tensor]:
    """Draw scales and a cap; those of ``heads`` may differ."""
    formats: dict[str, Tensor] = {}
    if rng.random() < 0.3:
        formats["softmax_scale"] = rng.uniform(0.5, 2.0, heads) / size**0.5
    if rng.random() < 0.2:
        formats["v_scale"] = rng.uniform(0.02, 0.05, kv_heads)
    if config.logit_cap and rng.random() < 0.6:
        formats["logit_cap"] = np.asarray(rng.uniform(2.0, 50.0))
    if config.output == "int16" and rng.random() < 0.3:
        formats["output_fraction"] = rng.integers(0, 16, heads if rng.random() < 0.5 else 1)
    if config.output == "int8" and rng.random() < 0.3:
        formats["output_scale"] = rng.uniform(0.005, 0.05, heads if rng.random() < 0.5 else 1)
    return formats


def _tensors(
    rng: np.random.Generator,
    heads: int,
    kv_heads: int,
    queries: int,
    keys: int,
    query_size: int,
    value_size: int,
) -> dict[str, Tensor]:
    spread = rng.choice(_SPREADS)
    return {
        "q": rng.normal(size=(heads, queries, query_size)) * spread,
        "k": rng.normal(size=(kv_heads, keys, query_size)),
        "v": rng.normal(size=(kv_heads, keys, value_size)),
    }


def _paged() -> dict[str, dict[str, Tensor]]:
    """Return launches in pages: the end of a prefill, bitmaps, decoding of sequences with shared pages."""
    rng, span = np.random.default_rng(0), SMALL.tile_span
    prefill = _tensors(rng, 2, 1, 20, 7 * span - 5, 48, 32) | {"causal": np.asarray(True)}
    bitmap = _tensors(rng, 2, 2, 4 * SMALL.rows, 9 * span + 1, 16, 48)
    bitmap |= {"bitmap": rng.random((4, 10)) < 0.4, "pack": np.asarray(1)}
    table = np.array([[4, 1, 6, 2], [4, 1, 3, -1], [4, 0, -1, -1]])
    decode = _tensors(rng, 4, 2, 3, 7 * span, 32, 32)
    decode |= {"query_lengths": np.ones(3, int), "key_lengths": np.array([4, 3, 2]) * span - 9}
    return {
        "prefill": into_pages(prefill, span, seed=0),
        "bitmap": into_pages(bitmap, 2 * span, seed=1),
        "decode": decode | {"block_table": table, "page_keys": np.array(span)},
    }


def _decode() -> dict[str, dict[str, Tensor]]:
    """Return launches in which some sequences decode: behind a prefill and a chunk, before them, and with
    masks.

    Groups of heads take one set of packed heads, or several; no size is a multiple of the lanes.
    """
    rng = np.random.default_rng(0)
    mixed = {"query_lengths": np.array([30, 1, 2, 9]), "key_lengths": np.array([30, 700, 405, 75])}
    first = {"query_lengths": np.array([1, 20, 2]), "key_lengths": np.array([333, 20, 449])}
    masks = {"causal": np.asarray(True), "window": np.asarray(390)}
    return {
        "mixed": _tensors(rng, 6, 2, 42, 1210, 23, 28) | mixed | {"pack": np.asarray(2)},
        "first": _tensors(rng, 2, 2, 23, 802, 12, 23) | first,
        "masked": _tensors(rng, 4, 2, 42, 1210, 20, 9) | mixed | masks | {"pack": np.asarray(1)},
    }


def _extremes(sign: int, keys: int, size: int) -> dict[str, Tensor]:
    """Return launches with the largest products, and maxima that rise at every tile."""
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
