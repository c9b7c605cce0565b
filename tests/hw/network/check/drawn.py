"""Tiny programs of barriers, and mutants of programs' waits."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from hw.network.commands import Core
from hw.network.program.accesses import NONE, Accesses, Reads
from hw.network.program.program import Transfer
from hw.network.program.tasks import Task, Tasks

#: Granules of the scratchpad, and words of the memory.
GRANULES, WORDS = 12, 3


def _granules(rng: random.Random, count: int) -> np.ndarray:
    """Draw accesses to a granule or two each."""
    found = np.full((count, 4), NONE)
    for row in found:
        first = rng.randrange(GRANULES)
        row[0] = first
        if rng.random() < 0.2:
            row[1] = (first + 1) % GRANULES
    return found


def _accesses(rng: random.Random) -> Accesses:
    while True:
        writes = _granules(rng, rng.choice([0, 1, 1, 2, 2]))
        reads, most = [], max(0, len(writes) - 1)
        count = rng.choice([0, 1, 2, 2])
        before = np.array([min(n, most) for n in range(count)], np.int64)
        reads.append(Reads(granules=_granules(rng, count), before=before, gated=True))
        if rng.random() < 0.2:
            reads.append(Reads(granules=_granules(rng, 1), before=np.array([most])))
        if count + len(writes) and all(
            not {*reading.granules[n].tolist()} & {*writes[: reading.before[n]].ravel().tolist()} - {NONE}
            for reading in reads
            for n in range(len(reading.before))
        ):
            return Accesses(reads=tuple(reads), writes=writes, grid=(1, count))


def barriers(rng: random.Random) -> Tasks:
    """Draw a program of barriers."""
    count = rng.choice([2, 3, 3, 4])
    cores = [rng.choice([*Core]) for _ in range(count)]
    before = [tuple(cores[:n].count(core) for core in Core) for n in range(count + 1)]
    # Reads stand before a command, writes behind one.
    reads = sorted(rng.randrange(count) for _ in range(rng.choice([0, 0, 1, 2])))
    writes = sorted(rng.randrange(count) for _ in range(rng.choice([0, 0, 1])))

    def transfer(starts, others):
        place = rng.randrange(GRANULES // 4), rng.randrange(WORDS)
        return Transfer(address=place[0], dram_address=place[1], words=1, starts=starts, others=others)

    return Tasks(
        tasks=tuple(
            Task(
                core=core,
                accesses=_accesses(rng),
                waits=before[n],
                wait_reads=sum(place <= n for place in reads),
                wait_writes=sum(place < n for place in writes),
                name=f"task {n}",
            )
            for n, core in enumerate(cores)
        ),
        reads=tuple(transfer(before[n], sum(place < n for place in writes)) for n in reads),
        writes=tuple(transfer(before[n + 1], sum(place <= n for place in reads)) for n in writes),
        granules=GRANULES,
        memory_words=WORDS,
    )


def _moved(rng: random.Random, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Move one count by one, drop one, or swap two."""
    found, at = list(counts), rng.randrange(len(counts))
    way = rng.choice(["less", "less", "more", "none", "swap"])
    if way == "swap":
        other = rng.randrange(len(counts))
        found[at], found[other] = found[other], found[at]
    else:
        found[at] = {"less": max(0, found[at] - 1), "more": found[at] + 1, "none": 0}[way]
    return tuple(found)


def _mutated_task(rng: random.Random, task: Task) -> Task:
    follow = task.follow
    if follow is not None and rng.random() < 0.6:
        change = rng.choice(["none", "first", "first", "step", "core", "short"])
        further = rng.choice([-1, 1])
        mutants = {
            "none": None,
            "first": replace(follow, first=follow.first + further),
            "step": replace(follow, step=max(0, follow.step + further)),
            "core": replace(follow, core=rng.choice([*Core])),
            "short": replace(follow, per_tile=max(1, follow.per_tile - 1)),
        }
        return replace(task, follow=mutants[change])
    counts = _moved(rng, (*task.waits, task.wait_reads, task.wait_writes))
    return replace(task, waits=counts[:3], wait_reads=counts[3], wait_writes=counts[4])


def _mutated_transfer(rng: random.Random, transfer: Transfer) -> Transfer:
    counts = _moved(rng, (*transfer.starts, transfer.others))
    return replace(transfer, starts=counts[:3], others=counts[3])


def mutant(rng: random.Random, tasks: Tasks) -> Tasks:
    """Return a program with one wait that is off by one, missing or swapped."""
    kinds = ["tasks"] * 3 + ["pair"] + [each for each in ("reads", "writes") if getattr(tasks, each)]
    kind = rng.choice(kinds)
    if kind == "pair":
        listed = list(tasks.tasks)
        a, b = rng.sample(range(len(listed)), 2)
        first, second = listed[a], listed[b]
        listed[a] = replace(first, waits=second.waits)
        listed[b] = replace(second, waits=first.waits)
        return replace(tasks, tasks=tuple(listed))
    listed, change = list(getattr(tasks, kind)), _mutated_task if kind == "tasks" else _mutated_transfer
    at = rng.randrange(len(listed))
    listed[at] = change(rng, listed[at])
    return replace(tasks, **{kind: tuple(listed)})


def same_waits(first: Tasks, second: Tasks) -> bool:
    """Tell whether two programs of the same accesses have the same waits."""

    def waits(tasks: Tasks):
        own = [(each.waits, each.wait_reads, each.wait_writes, each.follow) for each in tasks.tasks]
        return own, tasks.reads, tasks.writes

    return waits(first) == waits(second)
