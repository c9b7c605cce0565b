"""The regression: operations of every code on small maps. The soak adds every TOUCH with every PAD, and
all sizes of values.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hw.launch import Tensor
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from sim.engines.oram.job import CODES, KEYS, REJECTED, SEED, STATE, VALUES
from sim.run.adapter import Case

#: One AES pipeline each way, and deadlines for a memory with random waits.
SMALL = OramConfig(
    log_n=8,
    aes_lanes=1,
    position_ports=4,
    record_ports=4,
    inflight=32,
    overflow_entries=64,
    position_cycles=384,
    touch_cycles=448,
    settle_cycles=384,
)


def roomy(config: OramConfig) -> OramConfig:
    """Return a configuration with deadlines for a memory with random waits, for its size of records.

    A beat of HBM then takes up to four cycles, and several records wait for one port.
    """
    touch, settle = 512 + 48 * config.record_beats, 256 + 40 * config.record_beats
    return replace(config, touch_cycles=min(4096, touch), settle_cycles=min(4096, settle))


_IN_SOAK = (
    replace(SMALL, touch="both", list_slots=10),
    roomy(replace(SMALL, pad="always", value_bytes=384, key_bits=32)),
    # Its pages leave the AES lanes no pause.
    roomy(replace(SMALL, touch="both", pad="always", value_bytes=64, record_ports=8)),
    # Full HBM bins need lists of 18 slots, as 2^22 keys do, and an operation every 5 cycles.
    replace(SMALL, mac_bits=64, bin_split=1, alpha=0.5, aes_lanes=4, record_ports=8),
    roomy(replace(SMALL, value_bytes=64, aes_lanes=4, alpha=0.0)),
    # Values of 512 bytes load the ports heavily: a memory with waits needs short lists and longer intervals.
    roomy(replace(SMALL, touch="both", value_bytes=512, list_slots=10, aes_lanes=2, interval_cycles=640)),
    replace(SMALL, log_n=10, pad="always", mac_bits=96, aes_lanes=4),
)
_LAUNCHES_IN_SOAK = 3  # one with each memory
_MODES = ("model", "jitter", "fast")


def regression() -> Iterator[Case]:
    """Return a launch, and in the soak many of all configurations.

    `tests/regression/test_oram_sequences.py` has sequences of several launches.
    """
    yield _case("small_model", SMALL, "model", 0)
    yield _case("small_jitter", SMALL, "jitter", 0, soak=True)
    for number, config in enumerate((SMALL, *_IN_SOAK)):
        for launch in range(_LAUNCHES_IN_SOAK):
            seed = 100 * (number + 1) + launch
            name = f"random_{number}_{launch}"
            yield _case(name, config, _MODES[launch % len(_MODES)], seed, soak=True)


def _case(name: str, config: OramConfig, memory: str, seed: int, *, soak: bool = False) -> Case:
    rng = np.random.default_rng(seed)
    count = 150 if not soak else 800 if config.value_bytes <= 64 else 160  # long pages take long
    return Case(
        name=name,
        board="u55c",
        config=config,
        tensors=random_operations(rng, config, count),
        memory=memory,
        seed=seed,
        soak=soak,
    )


def random_operations(rng: np.random.Generator, config: OramConfig, count: int) -> dict[str, Tensor]:
    """Draw operations on an empty map: loads of more keys than it holds, then ``count`` of all codes.

    Keys repeat at times; some codes are malformed, and some records are tampered with.
    """
    most = (1 << config.key_bits) - 1
    keys = rng.integers(most, size=config.keys * 17 // 16, dtype=np.uint64, endpoint=True)
    keys[:2] = 0, most
    picked = rng.integers(len(keys), size=count)
    again = rng.random(count) < 0.3
    picked[1:][again[1:]] = picked[:-1][again[1:]]
    codes = rng.choice([*Code, 5, 255], p=[0.03, 0.34, 0.3, 0.25, 0.04, 0.02, 0.02], size=count)
    total = len(keys) + count
    return {
        CODES: np.concatenate([np.full(len(keys), Code.LOAD), codes]).astype(np.uint8),
        KEYS: np.concatenate([keys, keys[picked]]),
        VALUES: rng.integers(256, size=(total, config.value_bytes), dtype=np.uint8),
        REJECTED: rng.random(total) < 0.02,
        SEED: np.array(rng.integers(1 << 32)),
        STATE: np.array(True),
    }
