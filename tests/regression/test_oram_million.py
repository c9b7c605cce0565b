"""A million operations on the oblivious map's RTL, beside a dict: every TOUCH and PAD, memory that waits; and
attacks on a default.
"""

from dataclasses import replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from sim.engines.oram.cases import SMALL
from sim.golden.oram.map import Command
from sim.run.run import run
from tests.support.oram.attacks import SEED, Attacker
from tests.support.oram.bus import BOARD
from tests.support.oram.links import with_fast_link
from tests.support.oram.workloads import answers, commands_of, tensors_of

#: At most an operation every 8 cycles, so that memory with waits can follow; and deadlines for its queues.
MAP = replace(
    SMALL,
    log_n=14,
    aes_lanes=2,
    inflight=128,
    overflow_entries=256,
    position_cycles=512,
    touch_cycles=640,
    settle_cycles=384,
)
CONFIGS = (
    MAP,
    replace(MAP, touch="both"),
    replace(MAP, pad="always", value_bytes=64, inflight=64),
    # Every record of both pages is read and written: memory with waits needs longer intervals.
    replace(MAP, touch="both", pad="always", key_bits=32, interval_cycles=24, touch_cycles=1024),
)
OPERATIONS = 250_000
ATTACKS = 1_000_000


@pytest.mark.soak
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.touch}-{config.pad}")
def test_a_million_answers_are_those_of_a_dict(config, tmp_path):
    """PUTs until it is nearly full, then deletes, then all codes: despite all waits, nothing is late."""
    rng, part = np.random.default_rng(17), OPERATIONS // 5
    commands = [
        command
        for workload, kinds in (
            ("uniform", (1, 2, 9, 1)),
            ("zipf", (1, 4, 5, 2)),
            ("uniform", (1, 2, 2, 7)),
            ("burst", (1, 4, 5, 2)),
            ("churn", (0, 1, 4, 3)),
        )
        for command in commands_of(workload, rng, part, config, config.keys * 7 // 8, kinds)
    ]
    result = run(
        "oram", config, BOARD, tensors_of(commands), directory=tmp_path, memory_mode="jitter", seed=3
    )
    are_those_of_a_dict(result, commands, config)


@pytest.mark.soak
@pytest.mark.parametrize("board", [BOARD, with_fast_link(BOARD)], ids=["u55c", "fast link"])
def test_a_million_attacks_on_a_default(board, tmp_path):
    """One key, pairs of a bin, and keys by Zipf's law, in any order: 10^6 operations at default deadlines."""
    config, rng = OramConfig(log_n=18), np.random.default_rng(19)
    attacker = Attacker(config, rng)
    kinds = (attacker.one(ATTACKS), attacker.pairs(ATTACKS, 10_000), attacker.zipf(ATTACKS, 1 << 17))
    keys = np.choose(rng.choice(3, ATTACKS, p=[0.3, 0.5, 0.2]), kinds)
    codes = rng.choice([Code.GET, Code.PUT, Code.DELETE], ATTACKS, p=[0.45, 0.47, 0.08])
    values = rng.bytes(ATTACKS * config.value_bytes)
    parts = (values[at : at + config.value_bytes] for at in range(0, len(values), config.value_bytes))
    commands = [Command(*one) for one in zip(codes.tolist(), keys.tolist(), parts, strict=True)]
    tensors = tensors_of(commands) | {"seed": np.array(SEED)}
    result = run("oram", config, board, tensors, directory=tmp_path)
    are_those_of_a_dict(result, commands, config)


def are_those_of_a_dict(result, commands, config):
    """Check every answer."""
    assert result.bit_exact, result.mismatches
    assert result.report.details["status"] == 0
    found = (result.integers[name] for name in ("statuses", "keys", "values"))
    rows = zip(*(part.tolist() for part in found), strict=True)
    expected = answers(commands, config, {})
    for number, ((status, key, value), right) in enumerate(zip(rows, expected, strict=True)):
        assert (status, key, bytes(value)) == right, f"operation {number}"
