"""Packing by exhaustive search, for a handful of blocks."""


def packable(blocks, capacity):
    """Whether some addresses let all blocks lie in ``capacity`` words.

    In a lowest packing each block lies at 0 or on another one.  So blocks can be placed in ascending order of
    address, each as low as possible: all such orders are tried.
    """
    steps = range(max(block.last for block in blocks) + 1)
    spans = [range(block.first, block.last + 1) for block in blocks]
    failed = set()

    def extend(level, heights, left):
        if not left:
            return True
        if (level, heights, left) in failed:
            return False
        for step in steps:
            if heights[step] + sum(blocks[i].size for i in left if step in spans[i]) > capacity:
                return False
        for index in left:
            low = max(heights[step] for step in spans[index])
            top = low + blocks[index].size
            raised = tuple(top if step in spans[index] else max(low, heights[step]) for step in steps)
            if low >= level and extend(low, raised, left - {index}):
                return True
        failed.add((level, heights, left))
        return False

    return extend(0, (0,) * len(steps), frozenset(range(len(blocks))))


def lie_apart(blocks, addresses, capacity):
    """Whether no two blocks that meet in a step share a word, and all lie within the capacity."""
    for one, block in enumerate(blocks):
        if not 0 <= addresses[one] <= capacity - block.size:
            return False
        for two in range(one):
            other = blocks[two]
            meet = block.first <= other.last and other.first <= block.last
            below = addresses[one] + block.size <= addresses[two]
            above = addresses[two] + other.size <= addresses[one]
            if meet and not below and not above:
                return False
    return True
