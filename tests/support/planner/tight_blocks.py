"""Blocks of a full allocator: like MiniMalloc's instances, and of any size."""

import random

from hw.scheduler.planner.address.blocks import AddressBlock

#: Most common sizes, in parts of the words.
_USUAL = (2, 3, 4, 6, 8, 12, 16, 24, 32)


def tight_blocks(seed: int, count: int, words: int = 1024) -> list[AddressBlock]:
    """Return blocks that fit into ``words`` and in most steps need all of them.

    They are the output of an allocator.  In each step some blocks end, short ones sooner than long ones.
    Their room is filled from below, by blocks of usual sizes or of the rest; one time in twenty it stays
    free.
    """
    rng = random.Random(seed)
    living: list[tuple[int, int, int, int]] = []  # address, words, first step, last step
    done: list[AddressBlock] = []
    step = 0
    while len(done) + len(living) < count:
        ended = [each for each in living if each[3] < step]
        done += [AddressBlock(first=first, last=last, size=size) for _, size, first, last in ended]
        living = sorted(each for each in living if each[3] >= step)
        low, holes = 0, []
        for address, size, *_ in [*living, (words, 0)]:
            if address > low:
                holes.append((low, address - low))
            low = address + size
        for low, size in holes:
            while size:
                part = min(size, words // 64 * rng.choice(_USUAL))
                if rng.random() < 0.2:
                    part = size if size < words // 4 else part
                if rng.random() > 0.05:
                    lasts = rng.choice((1, 2, 3, 5, 8, 20, 60))
                    living.append((low, part, step, step + rng.randrange(lasts)))
                low, size = low + part, size - part
        step += 1
    done += [AddressBlock(first=first, last=min(last, step), size=size) for _, size, first, last in living]
    rng.shuffle(done)
    return done
