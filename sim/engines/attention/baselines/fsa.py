"""FSA: all of FlashAttention in one systolic array.

Lin et al., "SystolicAttention: Fusing FlashAttention within a Single Systolic Array" (arXiv 2507.11331).
Times are those of its RTL (``VCA-EPFL/FSA``, ``ExecutionPlan.scala``), between the first cycles of two
instructions.  The order of loads is that of its kernel, ``python/main.py``.
"""

from sim.engines.attention.baselines.work import Cost, Machine, Work

#: Segments of the exponential, each a cycle; and the cycles of maximum, difference and scaling before it.
_SEGMENTS = 8
_BEFORE_EXPONENTIAL = 4


def tile_cycles(side: int) -> int:
    """Return the cycles of ``side`` queries and as many keys: loading of queries, scores, weighted values."""
    load = side
    scores = 2 * side + _BEFORE_EXPONENTIAL + _SEGMENTS
    values = 2 * side - 1
    return load + scores + values


def fsa(work: Work, machine: Machine) -> Cost:
    """Return the cost of FSA.

    An array has as many rows and columns as a head has elements, the only case of the source.  The machine's
    multipliers are divided into such arrays.
    """
    side = work.size
    query_tiles, key_tiles = -(-work.queries // side), -(-work.keys // side)
    moved = work.heads * (work.query_bytes + work.result_bytes + query_tiles * 2 * work.key_bytes)
    compute = work.heads * query_tiles * key_tiles * tile_cycles(side) / machine.arrays(side)
    return Cost(cycles=max(compute, machine.memory_cycles(moved)), moved_bytes=moved)
