"""How well cycles are predicted: random launches, control alone, on the calibrated memory.

``python -m sim.engines.attention.predictions [--seeds 200] [--first 0]`` runs one launch a seed on the engine of
`BOARD`, prints those whose prediction is off by more than `SHOWN`, and a summary; the exit status is 1 if one is
off by more than `MOST`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hw.attention.config import AttentionConfig
from sim.engines.attention.cases import tensors_of
from sim.engines.attention.figures import BOARD, CONFIGS
from hw.board import load_board
from sim.run.adapter import Tensor
from sim.run.run import run

#: Errors that are printed, and that no launch may have.
SHOWN, MOST = 0.01, 0.02
#: Tokens that a launch has at the most, and products of queries, keys and heads.
_LONGEST, _MOST_PAIRS = 1024, 4_000_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A launch's cycles."""

    text: str  #: What was launched.
    cycles: int
    error: float  #: Of the prediction, of the cycles.


def launch(seed: int, config: AttentionConfig) -> dict[str, Tensor]:
    """Draw a launch: lengths are as likely short as long, one of five decodes, two of five have equal queries and
    keys, one of three has several sequences."""
    rng = np.random.default_rng([2, seed])
    group = int(rng.choice([1, 1, 2, 4, 8]))
    kv_heads = int(rng.integers(1, 13 if group == 1 else 5))
    pack = int(rng.integers(1, min(group, config.rows) + 1))
    count = int(rng.choice([1, 1, 2, 5]))
    while True:
        queries, keys = (np.exp(rng.uniform(0, np.log(_LONGEST), count)).astype(int) for _ in range(2))
        kind = rng.random()
        if kind < 0.4:
            queries = keys
        elif kind < 0.6:
            queries = np.ones_like(keys)
        if group * kv_heads * int(queries @ keys) <= _MOST_PAIRS:
            break
    return tensors_of(rng, config, group=group, kv_heads=kv_heads, pack=pack, queries=queries, keys=keys)
