"""Regions: fewest dies, every resource within its share, the split against a search over all of them."""

import dataclasses
import itertools
import random

import pytest

from hw.board import board_names, load_board
from hw.board.regions import Region, die_of, divide, regions_of, undivided
from hw.board.resources import MOST_SHARES, Resources
from hw.registry import ENGINES, find_engine
from tests.support.boards import small_board

NONE = Resources(lut=0, ff=0, dsp=0, bram36=0, uram=0)


def board_of(slrs, memory=0, **user):
    """Return a board of several dies, with its memory's ports on one of them."""
    have = dataclasses.replace(Resources(lut=9999, ff=9999, dsp=9999, bram36=9999, uram=9999), **user)
    board = small_board()
    main = dataclasses.replace(board.memory, slr=memory)
    return dataclasses.replace(board, device=have, user=have, slrs=slrs, memories=(main,))


def fill(board, held):
    """Return the greatest share of a die's limits."""
    return max(
        sum(getattr(one, name) for one in held) / (MOST_SHARES[name] * count)
        for name, count in board.die.items()
    )


@pytest.mark.parametrize("name", ["lut", "ff", "dsp", "bram36", "uram"])
def test_every_resource_takes_a_kernel_to_another_die(name):
    """A hundred a die: a rest of 10 and groups of 30 stay on one die while its share holds them."""
    board = board_of(3, **{name: 300})
    group = dataclasses.replace(NONE, **{name: 30})
    rest = dataclasses.replace(NONE, **{name: 10})
    held = int((100 * MOST_SHARES[name] - 10) // 30)
    assert divide(board, rest, [group] * held) == (held,)
    assert len(divide(board, rest, [group] * (held + 1))) == 2


def test_the_fullest_die_is_as_empty_as_may_be():
    """Against a search over all splits in order, of random groups on three dies."""
    rng = random.Random(7)
    for _ in range(40):
        board = board_of(3, lut=300, dsp=300)
        kinds = [dataclasses.replace(NONE, lut=rng.randint(0, 40), dsp=rng.randint(0, 40)) for _ in range(6)]
        rest = dataclasses.replace(NONE, lut=rng.randint(0, 60), dsp=rng.randint(0, 60))
        found = divide(board, rest, kinds)

        def fullest(counts, kinds=kinds, rest=rest, board=board):
            ends = [0, *itertools.accumulate(counts)]
            runs = [kinds[start:end] for start, end in itertools.pairwise(ends)]
            return max(fill(board, [*run, *([] if n else [rest])]) for n, run in enumerate(runs))

        def splits(dies, count=6):
            return (counts for counts in itertools.product(range(7), repeat=dies) if sum(counts) == count)

        fits = (dies for dies in (1, 2, 3) if min(map(fullest, splits(dies))) <= 1)
        dies = next(fits, 3)
        assert len(found) == dies
        assert fullest(found) == pytest.approx(min(map(fullest, splits(dies))))


def test_what_fits_nowhere_is_spread_over_all_dies():
    board = board_of(3, lut=30, uram=0)
    assert divide(board, NONE, [dataclasses.replace(NONE, lut=20)] * 3) == (1, 1, 1)
    assert sum(divide(board, dataclasses.replace(NONE, uram=1), [NONE])) == 1


def test_regions_begin_at_the_memory_and_go_on_by_distance():
    board = board_of(4, memory=1)
    found = regions_of(board, (1, 0, 2, 1), [["a", "b"], ["c"], ["d"], ["e"]])
    assert found == (
        Region(slr=1, parts=("a", "b"), rest=True),
        Region(slr=0, parts=()),
        Region(slr=2, parts=("c", "d")),
        Region(slr=3, parts=("e",)),
    )
    assert undivided(board) == (Region(slr=1, parts=(), rest=True),)


def test_a_part_lies_where_it_or_what_holds_it_is_named():
    found = regions_of(board_of(2), (1, 1), [["body.row_1"], ["body.row_2"]])
    paths = {"": 0, "body": 0, "body.row_1": 0, "body.row_2": 1, "body.row_2.cell": 1, "body.row_21": 0}
    assert {path: die_of(found, path) for path in paths} == paths


@pytest.mark.parametrize(
    ("name", "board"),
    # The map needs the host's memory.
    [(n, b) for n in ENGINES for b in board_names() if n != "oram" or load_board(b).host is not None],
)
def test_every_engine_has_regions_on_every_board(name, board):
    """The memory's die has the rest, no part is named twice, and boards of one die have one region."""
    engine, board = find_engine(name), load_board(board)
    found = engine.regions(engine.default_config(board), board)
    assert [region.rest for region in found] == [True] + [False] * (len(found) - 1)
    assert found[0].slr == board.memory.slr
    assert len({region.slr for region in found}) == len(found) <= board.slrs
    parts = [part for region in found for part in region.parts]
    assert len(set(parts)) == len(parts)
    dies = 2 if name in ("attention", "conv", "network", "oram") and board.slrs > 1 else 1
    assert len(found) == dies
