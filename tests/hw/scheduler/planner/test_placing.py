from dataclasses import replace

import pytest

from hw.scheduler.graph.importers import load_model
from hw.scheduler.plan.options import Techniques
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner import placing
from hw.scheduler.planner.address import address, fitting
from hw.scheduler.planner.address.address import place
from hw.scheduler.planner.address.blocks import Placement
from hw.scheduler.planner.placing import place_residency
from hw.scheduler.planner.residency.residency import least_capacity, solve_residency
from hw.scheduler.planner.residency.stays import measure
from hw.scheduler.planner.solvers.cpsat import Worker
from hw.scheduler.planner.transfers import transfers
from tests.support.planner.graphs import random_graph
from tests.support.planner.packing_oracle import lie_apart, packable

#: Random graphs, operators and words whose best residency has no addresses.
UNPLACEABLE = ((193, 10, 23), (74, 24, 41))


@pytest.fixture(scope="module")
def worker():
    with Worker() as running:
        yield running


def problem_of(seed, operators):
    problem = Problem(graph=random_graph(seed, operators, most_bytes=12), word_bytes=1)
    return problem, tuple(range(problem.operator_count))


def blocks_of(problem, residency):
    return transfers.blocks_of(problem, residency.order, residency)


def check_consistent(problem, placed, capacity):
    residency = placed.residency
    blocks = blocks_of(problem, residency)
    assert lie_apart(blocks, placed.placement.addresses, capacity)
    assert placed.placement.height == max(
        address + block.size for address, block in zip(placed.placement.addresses, blocks, strict=True)
    )
    measured = measure(problem, residency.order, residency.stays, residency.streams)
    assert measured.avoidable_words == residency.avoidable_words >= residency.bound_words
    assert (residency.status == "optimal") == (residency.avoidable_words == residency.bound_words)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_addresses_lose_no_words(seed, streaming, worker):
    problem, order = problem_of(seed, 12)
    least = least_capacity(problem, order, streaming=streaming)
    for capacity in (least, least * 5 // 4):
        placed = place_residency(problem, order, capacity, streaming=streaming, worker=worker)
        check_consistent(problem, placed, capacity)
        best = solve_residency(problem, order, capacity, streaming=streaming, minimise=("bytes",))
        assert placed.residency.avoidable_words == best.avoidable_words
        assert placed.residency.status == "optimal"
        assert placed.placement.note == ""


@pytest.mark.parametrize(("seed", "operators", "capacity"), UNPLACEABLE)
def test_stays_without_addresses_are_decided_again(seed, operators, capacity, worker):
    problem, order = problem_of(seed, operators)
    alone = solve_residency(problem, order, capacity)
    blocks = blocks_of(problem, alone)
    assert alone.peak_words <= capacity
    assert place(blocks, capacity, worker=worker).status == "infeasible"
    placed = place_residency(problem, order, capacity, worker=worker)
    check_consistent(problem, placed, capacity)
    assert placed.residency.stays != alone.stays
    assert placed.residency.bound_words == alone.bound_words
    assert place_residency(problem, order, capacity, worker=worker) == placed


def test_the_unplaceable_residency_has_no_packing_at_all():
    seed, operators, capacity = UNPLACEABLE[0]
    problem, order = problem_of(seed, operators)
    assert not packable(blocks_of(problem, solve_residency(problem, order, capacity)), capacity)


def test_a_shared_network_at_its_budget(worker):
    problem = Problem(graph=load_model("rw40"))
    placed = place_residency(problem, range(problem.operator_count), 898 * 32, streaming=False, worker=worker)
    check_consistent(problem, placed, 898 * 32)
    assert (placed.residency.avoidable_words, placed.residency.status) == (836 * 32, "optimal")


def refuse(monkeypatch, accepts):
    """Fail every placement unless the blocks meet a condition."""
    refused = Placement(addresses=(), height=0, live=0, status="unknown", solver="none")

    def grudging(blocks, capacity, **options):
        return place(blocks, capacity, **options) if accepts(blocks) else refused

    monkeypatch.setattr(placing, "place", grudging)


def test_stays_that_cost_least_are_not_kept(monkeypatch, worker):
    problem, order = problem_of(3, 12)
    capacity = least_capacity(problem, order, streaming=False) * 3 // 2
    best = solve_residency(problem, order, capacity, streaming=False)
    refuse(monkeypatch, lambda blocks: False)
    placed = place_residency(problem, order, capacity, streaming=False, worker=worker)
    # First-fit alone finds addresses for all of it, so that nothing is lost.
    check_consistent(problem, placed, capacity)
    assert placed.residency.avoidable_words == best.avoidable_words
    calls = []

    def fit_all_but_two(blocks, prices, capacity, orders):
        found = list(fitting.fit_most(blocks, prices, capacity, orders))
        cheapest = sorted(range(len(blocks)), key=prices.__getitem__)[:2]
        for index in () if calls else cheapest:
            found[index] = fitting.NOWHERE
        calls.append(cheapest)
        return tuple(found)

    monkeypatch.setattr(placing, "_SHARES", (128,))
    monkeypatch.setattr(placing, "fit_most", fit_all_but_two)
    less = place_residency(problem, order, capacity, streaming=False, worker=worker)
    check_consistent(problem, less, capacity)
    assert best.avoidable_words < less.residency.avoidable_words
    assert less.residency.bound_words == best.avoidable_words
    assert "words more are moved" in less.placement.note
    assert set(best.stays) - set(less.residency.stays) == {best.stays[index] for index in calls[0]}


def test_the_last_resort_keeps_nothing(monkeypatch, worker):
    problem, order = problem_of(4, 12)
    capacity = least_capacity(problem, order) * 2
    refuse(monkeypatch, lambda blocks: False)
    without = Techniques(eviction=False)
    placed = place_residency(problem, order, capacity, worker=worker, techniques=without)
    check_consistent(problem, placed, capacity)
    assert all(stay.first_step == stay.last_step for stay in placed.residency.stays)
    assert "nothing is kept between two uses" in placed.placement.note
    assert placed.residency.status == "feasible"


def test_without_or_tools_there_is_still_a_plan(monkeypatch):
    monkeypatch.setattr(address, "SEARCHES", 0)
    seed, operators, capacity = UNPLACEABLE[0]
    problem, order = problem_of(seed, operators)
    with Worker(python="no-such-interpreter") as broken:
        placed = place_residency(problem, order, capacity, worker=broken)
    check_consistent(problem, placed, capacity)
    bound = solve_residency(problem, order, capacity, minimise=("bytes",)).bound_words
    assert placed.residency.bound_words == bound


def test_fallbacks_of_the_packing_are_told(monkeypatch, worker):
    problem, order = problem_of(1, 6)
    monkeypatch.setattr(
        placing, "place", lambda *args, **options: replace(place(*args, **options), note="a fallback")
    )
    placed = place_residency(problem, order, sum(problem.size), worker=worker)
    assert placed.placement.note == "a fallback"
