"""The network engine's regression: the default network on a small kernel and on the defaults of boards."""

from collections.abc import Iterator

import numpy as np

from hw.board import load_board
from hw.network.config import NetworkConfig
from hw.registry import find_engine
from sim.run.adapter import Case

#: A kernel of all units that builds in seconds: a beat of packets is two words of each port, and vectors take
#: four words where the matrix unit takes one.
SMALL = NetworkConfig(
    scratchpad_bytes=1 << 18,
    banks=4,
    memory="block",
    columns=32,
    weight_ports=2,
    lanes=16,
    max_steps=256,
    max_transfers=256,
    max_region_bytes=1 << 20,
    max_taps=512,
    vector_taps=128,
    scales=128,
    tables=16,
    exponentials=2,
    pixels=64,
    channels=64,
    attention_rows=2,
    attention_tokens=32,
)
#: Memory, and seed of inputs and waits; of `make test`, and more in the soak.
_IN_TEST = (("model", 0), ("jitter", 1))
_IN_SOAK = (("fast", 2), ("jitter", 3))
#: Defaults of boards, in the soak.
_BOARDS = ("u55c", "zcu104")


def network_cases() -> Iterator[Case]:
    """Return launches with random inputs: on the small kernel, and on the defaults of boards."""
    yield from (_case("u55c", SMALL, *run, soak=False) for run in _IN_TEST)
    yield from (_case("u55c", SMALL, *run, soak=True) for run in _IN_SOAK)
    engine = find_engine("network")
    for board in _BOARDS:
        config = engine.default_config(load_board(board))
        yield from (_case(board, config, *run, soak=True) for run in (*_IN_TEST, *_IN_SOAK))


def _case(board: str, config: NetworkConfig, memory: str, seed: int, *, soak: bool) -> Case:
    name = "default" if config == SMALL else f"default_{board}"
    return Case(
        name=f"{name}_{memory}_{seed}",
        board=board,
        config=config,
        tensors={"seed": np.asarray(seed)},
        memory=memory,
        seed=seed,
        soak=soak,
    )
