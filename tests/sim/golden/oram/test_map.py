"""The map answers like a dict for all operations, and keeps its invariants."""

import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from sim.golden.oram.front import draw
from sim.golden.oram.map import Command, ListOverflowError, keyed_map
from tests.support.oram.invariants import check_invariants
from tests.support.oram.workloads import WORKLOADS, answers, commands_of, draws, load_commands, quick_map

#: Small enough for lists to overflow, for windows longer than the number of pages, and for shared buckets.
SMALL = OramConfig(log_n=8, list_slots=6, slots=8, overflow_entries=256, inflight=16)
VARIANTS = {
    f"{touch}-{pad}-{alpha}": replace(SMALL, touch=touch, pad=pad, alpha=alpha)
    for touch in ("one", "both")
    for pad in ("skip", "always")
    for alpha in (0, 0.2, 0.9)
}


def run(config, commands, seed=0, every=97):
    """Run the commands, checking the state now and then; return the map and the outcomes."""
    state, outcomes, touched = quick_map(config, seed), [], Counter()
    for start in range(0, len(commands), every):
        new = state.run(commands[start : start + every])
        for outcome in new:
            touched.update(outcome.pages)
        check_invariants(state, touched)
        outcomes += new
    return state, outcomes


@pytest.mark.sample(12)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_answers_are_those_of_a_dict(variant, workload):
    config = VARIANTS[variant]
    rng = np.random.default_rng(WORKLOADS.index(workload))
    commands = commands_of(workload, rng, 700, config, universe=config.keys * 3 // 4)
    _, outcomes = run(config, commands)
    assert [outcome[:3] for outcome in outcomes] == list(answers(commands, config, {}))


@pytest.mark.soak
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_many_answers_are_those_of_a_dict(variant, workload):
    """A million operations; keys are inserted and removed, so that every structure gets full and empty."""
    config = replace(VARIANTS[variant], list_slots=14)
    rng = np.random.default_rng(WORKLOADS.index(workload))
    state, known = quick_map(config), {}
    for kinds in ((1, 2, 8, 1), (1, 2, 1, 8)) * 4:
        commands = commands_of(workload, rng, 1800, config, kinds=kinds)
        outcomes = state.run(commands)
        assert [outcome[:3] for outcome in outcomes] == list(answers(commands, config, known))
        check_invariants(state)


@pytest.mark.parametrize("variant", ["one-skip-0", "one-skip-0.2", "one-always-0.9"])
def test_full_map(variant):
    """With all keys in the map lists overflow; another key is refused and nothing is lost."""
    config = VARIANTS[variant]
    rng = np.random.default_rng(3)
    load = load_commands(config, config.keys + 2)
    mixed = commands_of("uniform", rng, 2000, config, universe=config.keys + 10, kinds=(1, 5, 6, 1))
    _, outcomes = run(config, load + mixed, every=500)
    assert [outcome[:3] for outcome in outcomes] == list(answers(load + mixed, config, {}))
    assert Status.FULL in [outcome.status for outcome in outcomes]


def test_full_buckets_refuse_a_key():
    """A key whose buckets are both full is refused before N are stored, and the stored keys stay."""
    config = VARIANTS["one-skip-0"]
    state = quick_map(config)
    mask = config.buckets - 1
    same = [
        key
        for key, permuted in enumerate(state.permuted(range(1 << 14)))
        if permuted & (mask << config.bucket_bits | mask) == 0
    ]
    room = 2 * config.bucket_entries
    assert len(same) > room
    outcomes = state.run([Command(Code.PUT, key, bytes(8)) for key in same])
    assert [outcome.status for outcome in outcomes] == (
        [Status.INSERTED] * room + [Status.FULL] * (len(same) - room)
    )
    check_invariants(state)


def test_overflow_stops_the_map():
    """An item without a place is a fault, and the last event."""
    config = replace(SMALL, list_slots=4, overflow_entries=4, alpha=0)
    state = quick_map(config)
    with pytest.raises(ListOverflowError):
        state.run(load_commands(config, config.keys))
    assert None not in state.overflow


def test_overflow_is_used_and_drained():
    config = replace(SMALL, list_slots=4, alpha=0.2)
    state = quick_map(config)
    commands = load_commands(config, config.keys)
    state.run(commands)
    assert sum(entry is not None for entry in state.overflow) > 10
    outcomes = state.run([Command(Code.DELETE, command.key) for command in commands])
    assert all(outcome.status == Status.HIT for outcome in outcomes)
    check_invariants(state)
    assert not any(state.overflow)
    assert not state.position.entries


@pytest.mark.parametrize("variant", VARIANTS)
def test_labels_are_drawn_once_and_revealed_once(variant):
    """A revealed label was drawn at the key's previous access, or now for an unknown key."""
    config = VARIANTS[variant]
    rng = np.random.default_rng(8)
    commands = commands_of("zipf", rng, 1500, config)
    state, outcomes = run(config, commands, every=1500)
    blocks = draws(config, 0)(np.arange(len(commands))).reshape(len(commands), -1)
    half = config.label_count
    last, shown = {}, set()
    for number, (command, outcome) in enumerate(zip(commands, outcomes, strict=True)):
        hit = outcome.status == Status.HIT
        assert outcome.drawn == (last[command.key] if hit else number)
        words = blocks[outcome.drawn][:half] if hit else blocks[number][half:]
        assert outcome.labels == tuple(int(word) * config.labels >> 64 for word in words)
        assert (outcome.drawn, hit) not in shown
        shown.add((outcome.drawn, hit))
        if outcome.status in (Status.HIT, Status.INSERTED):
            last[command.key] = number
            if command.code == Code.DELETE:
                del last[command.key]
    assert state.count == len(commands)


@pytest.mark.parametrize("variant", VARIANTS)
def test_pages_follow_from_labels(variant):
    """Pages are the revealed labels' in host memory; if padded, a random one for each label in HBM."""
    config = VARIANTS[variant]
    rng = np.random.default_rng(9)
    commands = commands_of("uniform", rng, 500, config)
    _, outcomes = run(config, commands, every=500)
    for outcome in outcomes:
        assert len(outcome.touches) == config.items
        of_labels = [label - config.hbm_labels for label in outcome.labels if label >= config.hbm_labels]
        if config.pad == "skip" or not config.hbm_labels:
            assert outcome.pages == of_labels
        else:
            assert len(outcome.pages) == config.label_count
            assert not Counter(of_labels) - Counter(outcome.pages)


@pytest.mark.parametrize("variant", VARIANTS)
def test_load_touches_page_after_page(variant):
    config = VARIANTS[variant]
    commands = load_commands(config, 100) * 2
    _, outcomes = run(config, commands)
    assert [outcome.status for outcome in outcomes] == [Status.INSERTED] * 100 + [Status.DUPLICATE] * 100
    assert [outcome.pages[0] for outcome in outcomes] == [n % config.host_pages for n in range(200)]


def test_items_wait_for_the_window():
    """An appended item is flushed W + 1 operations later, and not before."""
    config = replace(SMALL, alpha=0, touch="one")
    state = quick_map(config)
    state.run([Command(Code.PUT, 1, bytes(8))])
    (item,) = [item for items in state.records.values() for item in items if item]
    (record,) = state.position.entries.values()
    (record,) = record.records
    for number in range(1, config.window + 2):
        state._touch(number, record, record, None)
        waits = item in state.records[record]
        assert waits == (number <= config.window)
    assert state.pages[record][0] == item


def test_map_with_keys():
    """With AES the answers are the same, and labels those of the keys."""
    config = VARIANTS["both-always-0.2"]
    commands = commands_of("uniform", np.random.default_rng(1), 400, config)
    shown = []
    for draw_key in (bytes(range(16)), bytes(16)):
        state = keyed_map(config, permutation_key=bytes(range(16, 32)), draw_key=draw_key)
        outcomes = state.run(commands[:100]) + state.run(commands[100:])
        assert [outcome[:3] for outcome in outcomes] == list(answers(commands, config, {}))
        check_invariants(state)
        shown.append([outcome.labels for outcome in outcomes])
    assert shown[0] != shown[1]
    # The first misses: two labels from the second block of the draw, its lower half the first.
    block = draw(bytes(16), np.arange(1, dtype=np.uint64), draws=2)[0, 1].tobytes()
    halves = (int.from_bytes(part, "little") for part in (block[:8], block[8:]))
    assert shown[1][0] == tuple(half * config.labels >> 64 for half in halves)


def test_large_map_is_quick():
    config = OramConfig(log_n=16, list_slots=14, overflow_entries=128)
    state = quick_map(config)
    load = load_commands(config, config.keys // 2)
    mixed = commands_of("zipf", np.random.default_rng(2), 10_000, config)
    begin = time.process_time()
    outcomes = state.run(load) + state.run(mixed)
    assert time.process_time() - begin < 10
    assert [outcome[:3] for outcome in outcomes] == list(answers(load + mixed, config, {}))
    check_invariants(state)
