"""Sealed commands become queries: keys permuted, bits drawn, in order, and on their cycle."""

import random

import numpy as np
import pytest

from hw.lib.fifo import Fifo
from hw.lib.place import InlinePlacer
from hw.oram.config import OramConfig
from hw.oram.core.crypto.front import Front
from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.layouts import query_layout
from hw.oram.core.session.command_opener import CommandOpener
from hw.oram.core.session.queries import Queries
from hw.oram.core.session.record import record_shape
from hw.oram.driver.keys import Session
from hw.oram.driver.operations import Operations
from hw.oram.driver.sealing import seal_commands
from sim.golden.oram import front
from tests.support.gateware.streams import plain
from tests.support.oram.blocks import bits, content, round_keys
from tests.support.oram.timed import keyed, run_timed
from tests.support.oram.workloads import SMALLEST

CONFIG = OramConfig(**SMALLEST, touch="both")
UNIT = Queries(CONFIG, InlinePlacer())
COUNT = CONFIG.accepted + 8


def turn_of(opened, last):
    """Return the cycle in which the permutation takes a key, after the ``last`` one."""
    if last is None:
        return opened
    steps = -(-(Front.latency(CONFIG.interval) + 2) // CONFIG.interval)
    if opened > last + steps * CONFIG.interval:
        return opened  # it waits
    return opened + (last - opened) % CONFIG.interval


def schedule(rng, pauses, ready):
    """Return the cycles in which commands arrive, at most ``accepted`` ahead of the queries taken, and
    that of each query.
    """
    interval, begins, taken, begin = CONFIG.interval, [], [], Keystream.LATENCY
    turn = None
    for n in range(COUNT):
        if n >= CONFIG.accepted:
            begin = max(begin, taken[n - CONFIG.accepted] + 1)
        begins.append(begin)
        opened = begin + CommandOpener.latency(CONFIG) + Fifo.LATENCY
        turn = turn_of(opened, turn)
        there = turn + Front.latency(interval) + Fifo.DEEP_LATENCY
        taken.append(next(c for c in ready if c >= there and c > max(taken, default=0)))
        begin += interval + (rng.randrange(2 * interval) if pauses else 0)
    return begins, taken


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", ["close", "pauses", "full"])
def test_queries(way):
    """Also for a user that pauses, and one that takes none until the queue is full."""
    rng = random.Random(way)
    secrets = [rng.randbytes(16) for _ in range(3)]
    numbers = np.random.default_rng(len(way))
    operations = Operations(
        codes=numbers.integers(0, 5, COUNT).astype(np.uint8),
        keys=numbers.integers(0, 1 << 64, COUNT, np.uint64),
        values=np.zeros((COUNT, CONFIG.value_bytes), np.uint8),
    )
    records = seal_commands(CONFIG, Session(key=secrets[0], confirm=bytes(7)), operations)
    broken = numbers.random(COUNT) < 0.2
    records[broken, 40] ^= 2
    writes = keyed(UNIT.session_power, record_shape(CONFIG), secrets[0])
    first = 480 if way == "full" else 0
    ready = [c for c in range(first, 2000) if way == "close" or rng.random() < 0.3]
    begins, taken = schedule(rng, way == "pauses", ready)
    came, rejected = run_timed(
        UNIT,
        [(UNIT.i, {begin: bits(record) for begin, record in zip(begins, records, strict=True)})],
        [UNIT.query, UNIT.rejected],
        before=writes,
        constants=[
            *round_keys(UNIT, secrets[0], "session_keys"),
            *round_keys(UNIT, secrets[1], "permutation_keys"),
            *round_keys(UNIT, secrets[2], "draw_keys"),
            (UNIT.enable, 1),
        ],
        ready=[(UNIT.query, ready)],
        until=taken[-1] + 1,
    )
    assert list(came) == taken
    assert list(rejected) == [begins[n] + CommandOpener.latency(CONFIG) for n in np.flatnonzero(broken)]
    keys = np.where(broken, 0, operations.keys).astype(np.uint64)
    permuted = front.permute(secrets[1], keys, key_bits=64)
    drawn = front.draw(secrets[2], np.arange(COUNT, dtype=np.uint64), draws=CONFIG.draws)
    for n, word in enumerate(came.values()):
        query = plain(query_layout(CONFIG).from_bits(word))
        assert query["command"] == {
            "operation": n,
            "code": 0 if broken[n] else operations.codes[n],
            "key": keys[n],
            "rejected": broken[n],
            "malformed": 0,
        }
        assert query["permuted"] == permuted[n]
        assert [content(block) for block in query["draw"]] == [block.tobytes() for block in drawn[n]]
