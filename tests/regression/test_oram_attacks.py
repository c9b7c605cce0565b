"""Keys that share banks of HBM, at default deadlines: no sequence of them stops the oblivious map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from sim.engines.oram.job import simulation_secrets
from sim.golden.oram.front import map_keys, permute
from sim.run.run import run
from tests.support.oram.bucket_traffic import bin_of
from tests.support.oram.bus import BOARD

#: A link that never limits, as in docs/oram.md.
FAST = replace(
    BOARD,
    memories=(
        BOARD.memory,
        replace(
            BOARD.host,
            timing=replace(
                BOARD.host.timing,
                bytes_per_second=1e11,
                read_bursts=1024,
                write_bursts=1024,
                read_in_flight_bytes=1048576,
            ),
        ),
    ),
)
#: Operations of each attack; distinct keys of a bin that its deadline covers, one after the other.
OPERATIONS, PAIRS, MOST = 3000, 200, 40


def bins_of(config, seed, keys):
    """Return the bin of each key in table 0; the test knows the permutation's key."""
    secrets = simulation_secrets(seed)
    permuted = permute(map_keys(secrets.seed, secrets.epoch).permutation, keys, key_bits=config.key_bits)
    ports = config.position_ports // 2
    return [bin_of(int(word) & config.buckets - 1, ports) for word in permuted]


def attacks(config, seed):
    """Yield the keys of each attack [`OPERATIONS`]."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(1 << 63, size=64 * MOST, dtype=np.uint64)
    of = bins_of(config, seed, keys)
    groups = [keys[[one == place for one in of]] for place in sorted(set(of))]
    yield np.repeat(keys[:1], OPERATIONS)
    pairs = [rng.choice(groups[n % len(groups)], 2, replace=False) for n in range(PAIRS)]
    yield np.concatenate([np.tile(pair, OPERATIONS // PAIRS // 2 + 1) for pair in pairs])[:OPERATIONS]
    for count in (3, 10, MOST):
        group = next(group for group in groups if len(group) >= count)
        yield np.resize(group[:count], OPERATIONS)
    # 300 of a bin, between others: they leave the log, and return to it.
    pool = rng.integers(1 << 63, size=300_000 // 8, dtype=np.uint64)
    group = pool[[one == (0, 0) for one in bins_of(config, seed, pool)]][:300]
    assert len(group) == 300
    mixed = rng.choice(pool, OPERATIONS)
    mixed[::8] = np.resize(group, len(mixed[::8]))
    yield mixed


@pytest.mark.soak
@pytest.mark.parametrize("present", [True, False], ids=["present", "absent"])
@pytest.mark.parametrize("board", [BOARD, FAST], ids=["u55c", "fast link"])
@pytest.mark.parametrize("log_n", [18, 20])
def test_no_keys_stop_it(log_n, board, present, tmp_path):
    """One key, pairs and sets of a bin: all operations are answered as by the golden map."""
    config, seed = OramConfig(log_n=log_n), 7
    keys = np.concatenate(list(attacks(config, seed)))
    rng = np.random.default_rng(3)
    codes = rng.choice([Code.GET, Code.PUT], len(keys)) if present else np.full(len(keys), Code.GET)
    tensors = {
        "codes": codes.astype(np.uint8),
        "keys": keys,
        "values": rng.integers(256, size=(len(keys), config.value_bytes), dtype=np.uint8),
        "seed": np.array(seed),
    }
    result = run("oram", config, board, tensors, directory=tmp_path)
    assert result.report.details["status"] == 0
    assert result.bit_exact, result.mismatches
