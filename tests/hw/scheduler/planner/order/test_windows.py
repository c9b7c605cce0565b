"""Annealing of long orders window by window: legal orders, never worse, windows true to the whole."""

import numpy as np
import pytest

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.evaluate import Scratch, evaluate
from hw.scheduler.planner.order.lattice import Lattice
from hw.scheduler.planner.order.windows import improve_windows, window
from tests.support.planner.cells import wide_cells


@pytest.fixture(scope="module")
def lattice():
    return Lattice.of(Problem(graph=wide_cells(1, 120)), streaming=True)


def is_legal(lattice, order):
    place = np.argsort(order)
    return sorted(order) == list(range(len(order))) and all(
        place[operator] < place[later]
        for operator in range(len(order))
        for later in lattice.after[lattice.after_first[operator] : lattice.after_first[operator + 1]]
    )


def test_a_long_order_moves_less_and_stays_legal(lattice):
    start, capacity = tuple(range(len(lattice.fifo))), int(lattice.whole.max()) // 3
    before = int(evaluate(np.array(start), capacity, lattice, Scratch.of(lattice)))
    units, order = improve_windows(lattice, capacity, start, 0)
    assert is_legal(lattice, order)
    assert units == evaluate(np.array(order), capacity, lattice, Scratch.of(lattice))
    assert units < 0.9 * before
    assert improve_windows(lattice, capacity, start, 0, goal=before) == (before, start)


def test_a_seed_gives_one_order():
    small = Lattice.of(Problem(graph=wide_cells(1, 40)), streaming=True)
    start, capacity = tuple(range(len(small.fifo))), int(small.whole.max()) // 3
    found = improve_windows(small, capacity, start, 0)
    assert found[1] != start
    assert improve_windows(small, capacity, start, 0) == found


def test_a_window_over_everything_is_the_whole_problem(lattice):
    order, capacity = np.arange(len(lattice.fifo)), int(lattice.whole.max()) // 3
    work = Scratch.of(lattice)
    units = evaluate(order, capacity, lattice, work)
    part, room = window(order, 0, len(order), capacity, lattice, work)
    assert room == capacity
    assert evaluate(np.arange(len(order) + 2), room, part, Scratch.of(part)) == units


def test_what_stays_around_a_window_takes_its_room(lattice):
    order, capacity = np.arange(len(lattice.fifo)), int(lattice.size.sum())
    work = Scratch.of(lattice)
    assert evaluate(order, capacity, lattice, work) == 0
    begin, end = 70, 100
    part, room = window(order, begin, end, capacity, lattice, work)
    steps = [
        [
            step
            for step, o in enumerate(order)
            if tensor in lattice.tensor[lattice.first[o] : lattice.first[o + 1]]
        ]
        for tensor in range(len(lattice.size))
    ]
    inside = [any(begin <= step < end for step in touched) for touched in steps]
    over = [
        touched[0] < begin and touched[-1] >= end and not within
        for touched, within in zip(steps, inside, strict=True)
    ]
    assert capacity - room == lattice.size[over].sum()
    assert sorted(part.size) == sorted(lattice.size[inside])
    first, last = part.tensor[: part.first[1]], part.tensor[part.first[-2] :]
    entering = [touched[0] < begin for touched, within in zip(steps, inside, strict=True) if within]
    leaving = [touched[-1] >= end for touched, within in zip(steps, inside, strict=True) if within]
    assert sorted(first) == [index for index, enters in enumerate(entering) if enters]
    assert sorted(last) == [index for index, leaves in enumerate(leaving) if leaves]
    # Without room beside the operators every other tensor is evicted and paid for.
    needed = int(part.whole[1:-1].max())
    assert evaluate(np.arange(end - begin + 2), needed, part, Scratch.of(part)) > 0
