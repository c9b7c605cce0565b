"""The check agrees with every order of tiny programs, and refuses each kind of conflict."""

import random
from dataclasses import replace

import numpy as np
import pytest

from hw.network.check.check import check_tasks
from hw.network.check.clocks import OrderError
from hw.network.commands import Core, Follow
from hw.network.program.accesses import NONE, Accesses, Reads
from hw.network.program.order import order_tasks
from hw.network.program.program import Gathered, Transfer
from hw.network.program.tasks import Task, Tasks
from tests.hw.network.check.drawn import barriers, mutant, same_waits
from tests.hw.network.check.oracle import Oracle


def accepts(tasks):
    try:
        check_tasks(tasks)
    except OrderError:
        return False
    return True


@pytest.mark.parametrize(
    ("seed", "mutants"), [(0, 200), *(pytest.param(n, 2000, marks=pytest.mark.soak) for n in range(1, 6))]
)
def test_mutants_of_waits_beside_every_order(seed, mutants):
    """Programs as derived are accepted; of each mutant the check says what the oracle finds."""
    rng, found = random.Random(f"waits {seed}"), []
    while len(found) < mutants:
        given = barriers(rng)
        for program in (given, order_tasks(given, follows=()), ordered := order_tasks(given)):
            assert accepts(program)
            assert Oracle(program).verdict()
        for _ in range(3):
            changed = mutant(rng, rng.choice([ordered, ordered, given]))
            if not same_waits(changed, ordered) and not same_waits(changed, given):
                found.append(accepts(changed))
                assert found[-1] == Oracle(changed).verdict()
    assert mutants / 8 < sum(found) < 7 * mutants / 8


def accessing(*, reads=(), writes=(), gated=True):
    """Return accesses to a granule each; a read comes before the write of its number."""

    def rows(granules):
        return np.array([[each, *[NONE] * 3] for each in granules], np.int64).reshape(-1, 4)

    before = np.minimum(np.arange(len(reads)), max(0, len(writes) - 1))
    listed = (Reads(granules=rows(reads), before=before, gated=gated),) if reads else ()
    return Accesses(reads=listed, writes=rows(writes), grid=(1, len(reads)))


def task(core, name, *, waits=(0, 0, 0), follow=None, **fields):
    return Task(core=core, name=name, waits=waits, follow=follow, accesses=accessing(**fields))


def tasks(*listed, **fields):
    return Tasks(**({"tasks": listed, "granules": 16, "memory_words": 4} | fields))


MAKER = task(Core.MATRIX, "maker", writes=[1, 2, 3])
USER = task(Core.VECTOR, "user", reads=[1, 2, 3], writes=[4, 5, 6])
#: A row of a table of three, from word 1 of the memory on.
ROWS = Gathered(rows=1, table=1, table_rows=3)
GATE = Follow(core=Core.MATRIX, first=0, step=1, tile_step=0, per_tile=3, tiles=1)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (tasks(MAKER, USER), "user and maker access granule 1 "),
        (tasks(MAKER, replace(USER, follow=replace(GATE, first=-1))), "user and maker access granule 1 "),
        (tasks(MAKER, replace(USER, follow=replace(GATE, per_tile=2))), "user and maker access granule 3 "),
        (tasks(MAKER, replace(USER, follow=replace(GATE, first=1))), "user follows words of the matrix core"),
        (tasks(replace(USER, waits=(1, 0, 0)), MAKER), "user waits for a command of the matrix core"),
        (tasks(USER, task(Core.MATRIX, "later", writes=[3])), "later and user access granule 3 "),
        (tasks(USER, task(Core.MATRIX, "later", writes=[6])), "later and user access granule 6 "),
        (tasks(task(Core.VECTOR, "turned", reads=[1, 2], writes=[2, 1])), "turned and itself"),
        (tasks(replace(USER, wait_reads=1)), "user waits for more reads"),
        (
            tasks(MAKER, reads=(Transfer(dram_address=0, address=0, words=1),)),
            "reads 0 and maker access granule 1 ",
        ),
        (
            tasks(MAKER, writes=(Transfer(dram_address=0, address=0, words=1, starts=(0, 0, 0)),)),
            "writes 0 and maker|maker and writes 0",
        ),
        (
            tasks(
                reads=(Transfer(dram_address=1, address=0, words=1),),
                writes=(Transfer(dram_address=1, address=1, words=1),),
            ),
            "share words of the memory",
        ),
        (
            tasks(
                reads=(Transfer(dram_address=0, address=0, words=1, gathered=ROWS),),
                writes=(Transfer(dram_address=3, address=1, words=1),),
            ),
            "share words of the memory",
        ),
        (
            tasks(
                MAKER,
                reads=(Transfer(dram_address=0, address=3, words=1, others=1),),
                writes=(Transfer(dram_address=1, address=2, words=1, others=1),),
            ),
            "wait for each other",
        ),
    ],
)
def test_refused(program, words):
    with pytest.raises(OrderError, match=words):
        check_tasks(program)


def test_a_gate_may_not_count_words_too_far_away():
    """Counters of 20 bits are compared; half of their range is the most."""
    half = 1 << 19
    wide = np.full((half, 4), NONE)
    wide[:, 0] = 7
    many = Task(core=Core.MATRIX, name="many", accesses=Accesses(reads=(), writes=wide))
    user = replace(USER, follow=GATE)
    check_tasks(tasks(MAKER, user, replace(many, accesses=Accesses(reads=(), writes=wide[3:]))))
    with pytest.raises(OrderError, match="too far away"):
        check_tasks(tasks(MAKER, user, many))
    check_tasks(tasks(MAKER, user, replace(many, waits=(0, 1, 0))))
