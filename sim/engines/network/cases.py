"""The network engine's regression: the default network on a small kernel, on every kind of memory."""

from collections.abc import Iterator

import numpy as np

from hw.network.config import NetworkConfig
from sim.run.adapter import Case

#: A kernel that builds in seconds: a beat of packets is two words of each port, and vectors take four words
#: where the matrix unit takes one.
SMALL = NetworkConfig(
    scratchpad_bytes=1 << 16,
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
    tables=8,
    exponentials=2,
)
#: Memory, seed of inputs and waits, soak.
_RUNS = (("model", 0, False), ("jitter", 1, False), ("fast", 2, True), ("jitter", 3, True))


def network_cases() -> Iterator[Case]:
    """Return launches with random inputs."""
    for memory, seed, soak in _RUNS:
        yield Case(
            name=f"default_{memory}_{seed}",
            board="u55c",
            config=SMALL,
            tensors={"seed": np.asarray(seed)},
            memory=memory,
            seed=seed,
            soak=soak,
        )
