"""Blocks to be packed: MiniMalloc's instances and random ones."""

import csv
import random
from pathlib import Path

from hw.scheduler.planner.address.blocks import AddressBlock

INSTANCES = Path(__file__).parents[2] / "data" / "minimalloc"

#: Of MiniMalloc's instances, which fit exactly.
CAPACITY = 1_048_576


def minimalloc(name):
    """One of MiniMalloc's instances: lines of id, lower, upper, size, the upper step not included."""
    with (INSTANCES / f"{name}.csv").open(newline="") as file:
        rows = [{column: int(value) for column, value in row.items()} for row in csv.DictReader(file)]
    return [AddressBlock(first=row["lower"], last=row["upper"] - 1, size=row["size"]) for row in rows]


def random_blocks(seed, count, steps=6, most=6):
    """Short blocks anywhere."""
    rng = random.Random(seed)
    blocks = []
    for _ in range(count):
        first = rng.randrange(steps)
        last = min(steps - 1, first + rng.randrange(3))
        blocks.append(AddressBlock(first=first, last=last, size=rng.randint(1, most)))
    return blocks


def full_blocks(seed, steps=10, words=10, most=5):
    """Blocks that need every word in every step; some such sets cannot be packed."""
    rng = random.Random(seed)
    living, blocks = [], []
    for step in range(steps):
        for first, size in [each for each in living if rng.random() < 0.4]:
            living.remove((first, size))
            blocks.append(AddressBlock(first=first, last=step - 1, size=size))
        while free := words - sum(size for _, size in living):
            living.append((step, min(free, rng.randint(1, most))))
    return blocks + [AddressBlock(first=first, last=steps - 1, size=size) for first, size in living]


def perfect_blocks(seed, count, steps=200, words=1024):
    """Cut a rectangle into rectangles: packable without a word to spare."""
    rng = random.Random(seed)
    parts = [(0, steps, 0, words)]
    while len(parts) < count:
        parts.sort(key=lambda part: (part[1] - part[0]) * (part[3] - part[2]))
        first, end, low, high = parts.pop(rng.randrange(len(parts) // 2, len(parts)))
        if (rng.random() < 0.5 and end - first > 1) or high - low < 2:
            cut = rng.randrange(first + 1, end)
            parts += [(first, cut, low, high), (cut, end, low, high)]
        else:
            cut = rng.randrange(low + 1, high)
            parts += [(first, end, low, cut), (first, end, cut, high)]
    rng.shuffle(parts)
    return [AddressBlock(first=first, last=end - 1, size=high - low) for first, end, low, high in parts]
