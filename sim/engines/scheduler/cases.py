"""The scheduler engine's regression: the plan that comes with it, on every kind of memory.

Plans made anew are simulated by tests of their own: a plan takes too long to make for a list of cases.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hw.board import load_board
from hw.registry import find_engine
from sim.run.adapter import Case

#: Board, memory, seed, soak. A U55C has words of 32 bytes, a ZCU104 words of 16.
_RUNS = (
    ("u55c", "model", 0, False),
    ("u55c", "fast", 1, False),
    ("u55c", "jitter", 2, False),
    ("u55c", "jitter", 3, False),
    ("zcu104", "jitter", 4, True),
    ("zcu104", "model", 5, True),
)


def scheduler_cases() -> Iterator[Case]:
    """Return the default configuration's program with random sources; one build a board."""
    engine = find_engine("scheduler")
    for board, memory, seed, soak in _RUNS:
        yield Case(
            name=f"default_{board}_{memory}_{seed}",
            board=board,
            config=engine.default_config(load_board(board)),
            tensors={"seed": np.asarray(seed)},
            memory=memory,
            seed=seed,
            soak=soak,
        )
