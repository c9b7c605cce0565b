"""The scheduler engine's regression: the default plan, on every kind of memory.

Other plans have tests of their own, because planning takes too long for a list of cases.
"""

from collections.abc import Iterator

import numpy as np

from hw.board import load_board
from hw.registry import find_engine
from sim.run.adapter import Case

#: Board, memory, seed, soak. A word has 32 bytes on a U55C, 16 on a ZCU104.
_RUNS = (
    ("u55c", "model", 0, False),
    ("u55c", "jitter", 2, False),
    ("u55c", "fast", 1, True),
    ("u55c", "jitter", 3, True),
    ("zcu104", "jitter", 4, True),
    ("zcu104", "model", 5, True),
)


def scheduler_cases() -> Iterator[Case]:
    """Return launches of the default configuration with random sources; one build a board."""
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
