import pytest

from hw.scheduler.planner.address import address
from hw.scheduler.planner.address.address import place
from hw.scheduler.planner.address.blocks import AddressBlock, live_in_steps, squeeze
from hw.scheduler.planner.address.fitting import NOWHERE, first_fit
from hw.scheduler.planner.solvers.cpsat import Worker
from tests.support.planner.packing_blocks import (
    CAPACITY,
    full_blocks,
    minimalloc,
    perfect_blocks,
    random_blocks,
)
from tests.support.planner.packing_oracle import lie_apart, packable


@pytest.fixture(scope="module")
def worker():
    with Worker() as running:
        yield running


@pytest.fixture
def only_cpsat(monkeypatch):
    """No search on a skyline before CP-SAT."""
    monkeypatch.setattr(address, "SEARCHES", 0)
    monkeypatch.setattr(address, "MANY", 10_000)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", "ABCDFHK")
def test_minimalloc_instances_fit_exactly(name, worker):
    found = check_minimalloc(name, worker)
    assert "skyline search" in found.solver


@pytest.mark.parametrize("name", ["C", pytest.param("H", marks=pytest.mark.soak)])
def test_minimalloc_instances_fit_exactly_by_cpsat(name, worker, only_cpsat):
    found = check_minimalloc(name, worker)
    assert "CP-SAT" in found.solver


def check_minimalloc(name, worker):
    blocks = minimalloc(name)
    found = place(blocks, CAPACITY, worker=worker)
    assert found.status == "placed"
    assert lie_apart(blocks, found.addresses, CAPACITY)
    assert found.live <= found.height <= CAPACITY
    assert found.note == ""
    return found


@pytest.mark.parametrize("seed", range(3))
def test_perfect_packings_are_found(seed, worker):
    blocks = perfect_blocks(seed, 60)
    found = place(blocks, 1024, worker=worker)
    assert (found.status, found.height, found.live) == ("placed", 1024, 1024)
    assert lie_apart(blocks, found.addresses, 1024)


@pytest.mark.parametrize("searches", [address.SEARCHES, 0])
def test_equals_trying_every_packing(searches, worker, monkeypatch):
    monkeypatch.setattr(address, "SEARCHES", searches)
    proven = 0
    sets = [random_blocks(seed, 7) for seed in range(40)] + [full_blocks(seed) for seed in range(55, 100)]
    for blocks in sets:
        live = live_words(blocks)
        assert live == max(sum(b.size for b in blocks if b.first <= step <= b.last) for step in range(10))
        for capacity in (live, live + 1):
            found = place(blocks, capacity, worker=worker)
            if found.status == "placed":
                assert lie_apart(blocks, found.addresses, capacity)
                assert found.height == max(a + b.size for a, b in zip(found.addresses, blocks, strict=True))
            else:
                assert (found.status, found.addresses) == ("infeasible", ())
                assert not packable(blocks, capacity)
                proven += 1
    assert proven == len(UNPACKABLE)


def live_words(blocks):
    """Most words needed in one step."""
    return max(live_in_steps(squeeze(blocks)))


#: Seeds of `full_blocks` that no packing exists for.
UNPACKABLE = (64, 76, 96)


def test_too_many_words_in_one_step_need_no_solver(worker):
    blocks = [AddressBlock(first=0, last=3, size=5), AddressBlock(first=3, last=4, size=6)]
    found = place(blocks, 10, worker=worker)
    assert (found.status, found.live, found.solver) == ("infeasible", 11, "live words")
    assert place([], 0, worker=worker).status == "placed"


def test_parts_without_a_common_step_are_placed_apart(worker):
    blocks = [
        AddressBlock(first=0, last=1, size=7),
        AddressBlock(first=2, last=3, size=7),
        AddressBlock(first=3, last=3, size=3),
    ]
    found = place(blocks, 10, worker=worker)
    assert found.status == "placed"
    assert lie_apart(blocks, found.addresses, 10)
    assert found.addresses[0] == 0


def test_sizes_with_a_common_divisor_keep_it(worker):
    blocks = [
        AddressBlock(first=0, last=2, size=96),
        AddressBlock(first=1, last=3, size=64),
        AddressBlock(first=3, last=3, size=32),
    ]
    found = place(blocks, 175, worker=worker)
    assert found.status == "placed"
    assert all(address % 32 == 0 for address in found.addresses)


def test_without_or_tools_the_other_packings_do_what_they_can(only_cpsat):
    blocks, capacity = full_blocks(UNPACKABLE[0]), 10
    with Worker(python="no-such-interpreter") as broken:
        found = place(blocks, capacity, worker=broken)
        assert (found.status, found.addresses) == ("unknown", ())
        assert "CP-SAT was not available (solver process does not start" in found.note
        assert found.solver == "skyline search"
        assert place(blocks, 2 * capacity, worker=broken).status == "placed"


def test_first_fit_fills_the_lowest_gap():
    blocks = [
        AddressBlock(first=0, last=1, size=4),
        AddressBlock(first=0, last=3, size=3),
        AddressBlock(first=2, last=3, size=2),
        AddressBlock(first=2, last=3, size=3),
    ]
    assert first_fit(blocks, (0, 1, 2, 3), 10) == (0, 4, 0, 7)
    assert first_fit(blocks, (0, 1, 2, 3), 9) == (0, 4, 0, NOWHERE)
    assert first_fit(blocks, (1, 3, 2, 0), 9) == (3, 0, 6, 3)


@pytest.mark.parametrize("seed", UNPACKABLE)
def test_what_cannot_be_packed_is_told(seed, worker):
    found = place(full_blocks(seed), 10, worker=worker)
    assert (found.status, found.addresses) == ("infeasible", ())


@pytest.mark.parametrize("seed", range(30))
def test_addresses_are_right(seed, worker):
    blocks = random_blocks(seed, 8)
    capacity = live_words(blocks)
    found = place(blocks, capacity, worker=worker)
    assert (found.status == "placed") == packable(blocks, capacity)
    if found.status == "placed":
        assert lie_apart(blocks, found.addresses, capacity)


def test_addresses_of_a_real_instance_with_room(worker):
    blocks = minimalloc("K")
    found = place(blocks, CAPACITY * 9 // 8, worker=worker)
    assert found.status == "placed"
    assert lie_apart(blocks, found.addresses, CAPACITY * 9 // 8)


def test_a_limit_is_said(worker, only_cpsat):
    hard = minimalloc("D")
    found = place(hard, CAPACITY, seconds=0.02, worker=worker)
    assert found.status == "unknown"
    assert found.note == "stopped by the time limit of 0.02 s: may differ from run to run"
