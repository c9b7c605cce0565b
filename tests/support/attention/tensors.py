"""Configurations and tensors for tests of the attention adapter."""

import numpy as np

from hw.attention.config import AttentionConfig
from hw.board import load_board

CONFIG = AttentionConfig(
    rows=4, lanes=32, folds=1, tile_keys=16, ports_per_stream=1, merge_lanes=4, cached_keys=64
)
OPTIONS = AttentionConfig(
    rows=4, lanes=32, folds=1, tile_keys=16, merge_lanes=4, cached_keys=64, logit_cap=True, alibi=True
)
BOARD = load_board("u55c")


def changed(config, **fields):
    return AttentionConfig(**{name: getattr(config, name) for name in config.__dataclass_fields__} | fields)


def floats(heads=2, kv_heads=1, queries=5, keys=7, size=32, value_size=None):
    rng = np.random.default_rng(0)
    return {
        "q": rng.normal(size=(heads, queries, size)),
        "k": rng.normal(size=(kv_heads, keys, size)),
        "v": rng.normal(size=(kv_heads, keys, value_size or size)),
    }


def with_(**changes):
    return lambda tensors: tensors | changes


def without(name):
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}
