from dataclasses import replace

import pytest

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.address import place
from hw.scheduler.planner.address.blocks import Block, HardSteps, Placement, live_words
from hw.scheduler.planner.residency.headroom import leave_headroom
from hw.scheduler.planner.residency.residency import least_capacity, measure, solve_residency
from hw.scheduler.planner.transfers import transfers
from tests.support.planner.graphs import random_graph
from tests.support.planner.packing_blocks import CAPACITY, minimalloc, random_blocks
from tests.support.planner.packing_oracle import lie_apart, packable


def blocks_of(problem, residency):
    return transfers.blocks_of(problem, residency.order, residency)


class Case:
    """A random problem whose packing goes up to a limit in each step, which `pack` tells about."""

    def __init__(self, seed, limit):
        self.problem = Problem(graph=random_graph(seed, 14, most_bytes=12), word_bytes=1)
        self.order = tuple(range(self.problem.operator_count))
        self.least = least_capacity(self.problem, self.order)
        self.capacity = max(self.problem.working_set) * 3 // 2
        self.limit = limit
        self.asked = []

    def decide(self, problem, words):
        self.asked.append((problem, words))
        return solve_residency(problem, self.order, words)

    def pack(self, residency):
        blocks = blocks_of(self.problem, residency)
        used = [sum(b.size for b in blocks if b.first <= step <= b.last) for step in self.order]
        over = [step for step in self.order if used[step] > self.limit(step, self)]
        if over:
            hard = tuple(HardSteps(first=step, last=step, failures=1) for step in over)
            return Placement(addresses=(), height=0, live=0, status="unknown", solver="limit", hard=hard)
        addresses = tuple(0 for _ in blocks)
        return Placement(addresses=addresses, height=0, live=0, status="placed", solver="limit")

    def ease(self):
        return leave_headroom(
            self.problem, self.order, self.capacity, least=self.least, decide=self.decide, pack=self.pack
        )


def crowded(step, case):
    """One step in the middle where far less can be packed, but its operands can."""
    if step != len(case.order) // 2:
        return case.capacity
    return max(case.problem.working_set[case.order[step]], case.capacity * 5 // 8)


@pytest.mark.parametrize("seed", range(6))
def test_a_crowded_step_costs_no_more_than_less_of_the_whole_scratchpad(seed):
    case = Case(seed, crowded)
    eased = case.ease()
    assert case.pack(eased.residency).status == "placed"
    everywhere = solve_residency(case.problem, case.order, max(case.least, case.capacity * 5 // 8))
    assert eased.residency.avoidable_words <= everywhere.avoidable_words
    measured = measure(case.problem, case.order, eased.residency.stays, eased.residency.streams)
    assert measured.avoidable_words == eased.residency.avoidable_words
    assert measured.peak_words == eased.residency.peak_words


def test_words_are_reserved_where_it_is_hard_alone():
    seeds = [seed for seed in range(20) if "left free" in Case(seed, crowded).ease().note]
    assert seeds
    case = Case(seeds[0], crowded)
    case.ease()
    reserved = [problem.fifo for problem, _ in case.asked if problem is not case.problem]
    middle = len(case.order) // 2
    for fifo in reserved:
        assert all(words == 0 for step, words in enumerate(fifo) if abs(step - middle) > 1)
    assert max(fifo[middle] for fifo in reserved) > 0


@pytest.mark.parametrize("seed", range(4))
def test_everywhere_a_little_less(seed):
    case = Case(seed, lambda step, case: max(case.least, case.capacity * 3 // 4))
    eased = case.ease()
    less = solve_residency(case.problem, case.order, max(case.least, case.capacity * 96 // 128))
    assert eased.residency.avoidable_words <= less.avoidable_words
    assert case.pack(eased.residency).status == "placed"


def test_nothing_can_be_packed():
    assert Case(0, lambda step, case: -1).ease() is None


@pytest.mark.parametrize("seed", range(30))
def test_quick_addresses_are_right(seed):
    blocks = random_blocks(seed, 8)
    capacity = live_words(blocks)
    found = place(blocks, capacity, rounds=0)
    assert (found.status == "placed") == packable(blocks, capacity)
    if found.status == "placed":
        assert lie_apart(blocks, found.addresses, capacity)
        assert found.hard == ()
    else:
        assert found.hard
        assert found.addresses == ()


def test_quick_addresses_tell_where_it_was_hard():
    problem = Problem(graph=random_graph(193, 10, most_bytes=12), word_bytes=1)
    full = blocks_of(problem, solve_residency(problem, range(problem.operator_count), 23))
    assert live_words(full) <= 23
    assert not packable(full, 23)
    hard = [replace(block, first=block.first + 100, last=block.last + 100) for block in full]
    easy = [Block(first=step, last=step + 1, size=1) for step in range(40)]
    blocks = easy + hard
    found = place(blocks, 23, rounds=0)
    assert found.status == "infeasible"
    assert found.hard
    assert all(100 <= steps.first <= steps.last <= 109 for steps in found.hard)
    assert [each.failures for each in found.hard] == sorted(
        (each.failures for each in found.hard), reverse=True
    )


def test_quick_addresses_of_a_real_instance():
    blocks = minimalloc("K")
    found = place(blocks, CAPACITY * 9 // 8, rounds=0)
    assert found.status == "placed"
    assert lie_apart(blocks, found.addresses, CAPACITY * 9 // 8)


def test_no_blocks():
    found = place([], 8, rounds=0)
    assert (found.status, found.addresses, found.height) == ("placed", (), 0)
