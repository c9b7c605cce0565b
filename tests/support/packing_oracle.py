"""Packing by trying everything: for a handful of blocks."""


def packable(blocks, capacity):
    """Whether some addresses let all blocks lie in ``capacity`` words.

    Every packing can be let fall until each block lies at 0 or on another one, so only such addresses are
    tried, in every order from below.
    """

    def extend(placed, left):
        if not left:
            return True
        for index in left:
            block = blocks[index]
            met = [
                (low, blocks[other].size)
                for other, low in placed.items()
                if blocks[other].first <= block.last and block.first <= blocks[other].last
            ]
            low = max((address + size for address, size in met), default=0)
            rises = low >= max(placed.values(), default=0)
            fits = rises and low + block.size <= capacity
            if fits and extend({**placed, index: low}, left - {index}):
                return True
        return False

    return extend({}, frozenset(range(len(blocks))))


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
