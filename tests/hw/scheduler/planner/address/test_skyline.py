import time

import pytest

from hw.scheduler.planner.address.address import SEARCHES
from hw.scheduler.planner.address.blocks import squeeze
from hw.scheduler.planner.address.skyline import search_addresses
from tests.support.planner.packing_blocks import full_blocks, perfect_blocks, random_blocks
from tests.support.planner.packing_oracle import lie_apart, packable
from tests.support.planner.tight_blocks import tight_blocks

#: Seeds of `full_blocks` of 8 steps and 12 words that no packing exists for.
UNPACKABLE = (177, 337)


def search(blocks, capacity, *, searches=40):
    """Search on blocks in steps that are all needed."""
    lasting = [block.last - block.first + 1 for block in blocks]
    return search_addresses(blocks, lasting, capacity, searches=searches)


def check_exact(blocks, capacity):
    """Addresses prove themselves; their absence is checked by exhaustive search."""
    status, addresses = search(blocks, capacity)
    if status == "placed":
        assert lie_apart(blocks, addresses, capacity)
    else:
        assert (status, addresses) == ("infeasible", ())
        assert not packable(blocks, capacity)
    return status


def live(blocks):
    return max(sum(b.size for b in blocks if b.first <= step <= b.last) for step in range(10))


@pytest.mark.parametrize("missing", [0, 1])
def test_equals_trying_every_packing(missing):
    """With one word less than is live there is never a packing, and the search says so."""
    for seed in range(60):
        blocks = random_blocks(seed, 8, most=9)
        assert check_exact(blocks, live(blocks) - missing) == ("infeasible" if missing else "placed")


def test_proofs_that_nothing_fits_are_right():
    found = {seed: check_exact(full_blocks(seed, steps=8, words=12, most=5), 12) for seed in range(400)}
    assert tuple(seed for seed, status in found.items() if status == "infeasible") == UNPACKABLE


@pytest.mark.parametrize("seed", range(6))
def test_perfect_packings_are_found(seed):
    blocks = perfect_blocks(seed, 100)
    found = search(blocks, 1024)
    assert found[0] == "placed"
    assert lie_apart(blocks, found[1], 1024)
    assert search(blocks, 1024) == found


def test_a_limit_ends_the_search():
    blocks = perfect_blocks(1, 320)
    assert search(blocks, 1024, searches=0) == ("unknown", ())
    assert search(blocks, 1024, searches=2) == ("unknown", ())


def test_steps_that_no_block_joins_are_independent():
    """Searching the one part for every state of the other one would take too long."""
    part = full_blocks(UNPACKABLE[0], steps=8, words=12, most=5)
    easy = perfect_blocks(0, 60, steps=60, words=12)
    apart = [type(b)(first=b.first + 8, last=b.last + 8, size=b.size) for b in easy]
    found = search([*apart, *part], 12, searches=1)
    assert found[0] == "infeasible"


@pytest.mark.parametrize("seed", range(4))
def test_what_an_allocator_packed_is_found(seed):
    blocks = tight_blocks(seed, 60)
    found = search(squeeze(blocks), 1024)
    assert found[0] == "placed"
    assert lie_apart(blocks, found[1], 1024)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_tight_blocks_are_tried_in_seconds(seed):
    """None of these is placed: the last word of a thousand blocks takes longer than it is worth."""
    blocks = squeeze(tight_blocks(seed, 1000))
    search(blocks[:100], 1024, searches=1)  # compiles it
    began = time.process_time()
    assert search(blocks, 1024, searches=SEARCHES // 2) == ("unknown", ())
    assert time.process_time() - began < 5
