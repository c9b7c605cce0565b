"""Every possible fault of the state is detected."""

from collections import Counter

import numpy as np
import pytest

from hw.oram.config import OramConfig
from sim.golden.oram.map import Item
from tests.support.oram.invariants import check_invariants
from tests.support.oram.workloads import commands_of, load_commands, quick_map

CONFIG = OramConfig(log_n=8, list_slots=4, overflow_entries=256, slots=8, inflight=16)


@pytest.fixture
def state():
    state = quick_map(CONFIG)
    state.run(load_commands(CONFIG, CONFIG.keys))
    state.run(commands_of("uniform", np.random.default_rng(0), 300, CONFIG, kinds=(0, 1, 1, 0)))
    assert any(state.overflow)
    return state


def first(slots):
    return next(at for at, item in enumerate(slots) if item is not None)


def occupied(stored):
    return next(slots for _, slots in sorted(stored.items()) if any(slots))


def lose_from_page(state):
    slots = occupied(state.pages)
    slots[first(slots)] = None


def lose_from_list(state):
    slots = occupied(state.records)
    slots[first(slots)] = None


def lose_from_overflow(state):
    state.overflow[first(state.overflow)] = None


def double(state):
    slots = occupied(state.pages)
    state.overflow[state.overflow.index(None)] = 0, slots[first(slots)]


def exchange_lost_for_double(state):
    double(state)
    lose_from_list(state)


def stray(state):
    slots = occupied(state.pages)
    slots[first(slots)] = Item(12345, bytes(8), 0)


def other_page(state):
    one, two = (slots for _, slots in sorted(state.pages.items())[:2])
    one[first(one)], two[first(two)] = two[first(two)], one[first(one)]


def other_label(state):
    entry = next(iter(state.position.entries.values()))
    entry.records = ((entry.records[0] + 1) % CONFIG.records,)


def no_such_label(state):
    next(iter(state.position.entries.values())).records = (CONFIG.records,)


def other_bucket(state):
    table = state.position.tables[0]
    one, two = sorted(table)[:2]
    table[one][first(table[one])], table[two][first(table[two])] = (
        table[two][first(table[two])],
        table[one][first(table[one])],
    )


def entry_lost(state):
    slots = occupied(state.position.tables[1])
    slots[first(slots)] = None


def entry_unknown(state):
    del state.position.entries[next(iter(state.position.entries))]


def too_long_a_page(state):
    occupied(state.pages).append(None)


def page_beyond(state):
    state.pages[CONFIG.host_pages] = occupied(state.pages).copy()


@pytest.mark.parametrize(
    "corrupt",
    [
        lose_from_page,
        lose_from_list,
        lose_from_overflow,
        double,
        exchange_lost_for_double,
        stray,
        other_page,
        other_label,
        no_such_label,
        other_bucket,
        entry_lost,
        entry_unknown,
        too_long_a_page,
        page_beyond,
    ],
)
def test_corruption_is_found(state, corrupt):
    check_invariants(state)
    corrupt(state)
    with pytest.raises(ValueError, match=r"."):
        check_invariants(state)


def test_versions_are_the_writes(state):
    writes = Counter(state.writes)
    check_invariants(state, writes)
    state.writes[3] += 1
    with pytest.raises(ValueError, match="versions"):
        check_invariants(state, writes)
