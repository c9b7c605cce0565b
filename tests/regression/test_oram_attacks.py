"""Keys that share banks of HBM, bursts and scans, at deadlines as chosen: no sequence stops the oblivious
map, and its bus follows from labels and host.
"""

from __future__ import annotations

import numpy as np
import pytest

from hw.board import load_board
from hw.oram.config import OramConfig
from hw.registry import find_engine
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL
from sim.run.run import compare
from tests.support.oram.attacks import SEED, Attacker, Late
from tests.support.oram.bus import BOARD, Bus, simulated
from tests.support.oram.links import with_fast_link

FAST = with_fast_link(BOARD)
#: Of few gates, with an operation every 4 cycles. A table of buckets has one port, and each of its bins two
#: rows; its deadline is chosen.
FEW = OramConfig(
    log_n=12,
    slots=6,
    aes_lanes=2,
    position_ports=2,
    record_ports=8,
    inflight=128,
    overflow_entries=64,
    touch_cycles=448,
    settle_cycles=448,
)
#: Operations of each attack; distinct keys of a bin that its deadline covers, one after the other.
OPERATIONS, PAIRS, MOST = 3000, 200, 40
#: Boards whose default is attacked.
BOARDS = {name: load_board(name) for name in ("u50", "u280", "u55c")} | {"fast link": FAST}


def check(attacker, bursts, board, directory, *, absent=0):
    """Run bursts, each of which finds the map at rest."""
    config = attacker.config
    job = attacker.job(bursts, absent=absent)
    late = Late(job, np.cumsum([len(keys) for keys in bursts])[:-1].tolist())
    launch = late.launch(board)
    done, trace = simulated(config, launch, directory, board=board)
    (call,) = done.answer.calls
    assert call.counters["status"] == 0
    assert compare(ADAPTER.outputs(job, config, done.buffers), ADAPTER.golden(job, config)) == ()
    Bus(config, launch, trace, board=board).follows(job, found=late.looks(), empty_pages=config.host_pages)


@pytest.mark.parametrize("config", [SMALL, pytest.param(FEW, marks=pytest.mark.soak)], ids=["small", "few"])
def test_bursts_on_a_bank_are_answered(config, tmp_path):
    """Keys of one bin, one key, few keys, and an absent bin; pairs in two rows of a bin where it has two."""
    attacker = Attacker(config, np.random.default_rng(3))
    pairs = attacker.pairs if config is FEW else lambda operations: attacker.bank(operations, 2)
    bursts = [attacker.bank(96, 16), pairs(240), attacker.one(144), attacker.zipf(144, 8)]
    check(attacker, [*bursts, pairs(96)], FAST, tmp_path, absent=1)


def on_banks(attacker):
    """Return attacks on bins of HBM."""
    yield attacker.one(OPERATIONS)
    yield attacker.pairs(OPERATIONS, PAIRS)
    for count in (3, 10, MOST):
        yield attacker.bank(OPERATIONS, count)
    # 300 of a bin, between others: they leave the log, and return to it.
    pool = attacker.banks(37_500)
    assert len(pool[0]) >= 300
    mixed = attacker.rng.choice(np.concatenate(pool), OPERATIONS)
    mixed[::8] = np.resize(pool[0][:300], len(mixed[::8]))
    yield mixed


@pytest.mark.soak
@pytest.mark.parametrize("absent", [False, True], ids=["present", "absent"])
@pytest.mark.parametrize("board", [BOARD, FAST], ids=["u55c", "fast link"])
@pytest.mark.parametrize("log_n", [18, 20])
def test_no_keys_stop_it(log_n, board, absent, tmp_path):
    """One key, pairs and sets of a bin, at once."""
    attacker = Attacker(OramConfig(log_n=log_n), np.random.default_rng(SEED))
    keys = np.concatenate(list(on_banks(attacker)))
    check(attacker, [keys], board, tmp_path, absent=int(absent))


@pytest.mark.soak
@pytest.mark.parametrize("absent", [False, True], ids=["present", "absent"])
@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_bursts_scans_and_few_keys(board, absent, tmp_path):
    """Many bursts from rest, a long scan, and keys by Zipf's law, on a board's default."""
    config = find_engine("oram").default_config(board)
    attacker = Attacker(config, np.random.default_rng(4))
    kinds = (
        attacker.one,
        attacker.pairs,
        lambda operations: attacker.bank(operations, MOST),
        attacker.draw,
        lambda operations: attacker.scan(operations, 8),
    )
    bursts = [kinds[n % len(kinds)](640) for n in range(20)]
    bursts += [attacker.scan(8000, 3000), attacker.zipf(8000, 3000)]
    check(attacker, bursts, board, tmp_path, absent=len(bursts) if absent else 0)
