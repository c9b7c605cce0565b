"""FuseMax: one pass over keys on one array, exponentials in its multipliers.

Nayak et al., "FuseMax: Leveraging Extended Einsums to Optimize Attention Accelerator Design", MICRO 2024
(arXiv 2406.10491).  The formulas are those of its artifact (``FPSG-UIUC/micro24-fusemax-artifact``,
``src/accel/proposal.py``), and reproduce its published table.  It is a model; there is no RTL.
"""

from sim.engines.attention.baselines.work import Cost, Machine, Work

#: Array slots of an exponential: six multiply-adds and the subtraction before them.
_EXPONENTIAL = 7


def tile_cycles(key_tiles: int, size: int) -> int:
    """Return the cycles of a query tile: the waterfall of the two-dimensional and the one-dimensional array.

    Four phases follow each other.  Scores and tile maxima run beside the sums of the tile before and, at the
    end, the division.  Then come running maxima; then exponentials and their sums beside those of the
    corrections; then weighted values beside the correction of the running numerators.
    """
    scores = key_tiles * (size + 1)
    sums = key_tiles * (1 + size) + size
    exponentials = corrections = key_tiles * (_EXPONENTIAL + 1)
    values = rescaled = key_tiles * size
    return max(scores, sums) + key_tiles + max(exponentials, corrections) + max(values, rescaled)


def resident_tiles(work: Work, machine: Machine) -> int:
    """Return P1, the query tiles whose queries and running results stay on chip while keys are streamed once.

    It is the largest divisor of the number of query tiles that fits beside one tile of keys and values. It is
    at least one, even if the memory is too small for it.
    """
    tiles = -(-work.queries // machine.side)
    key_tile = 2 * machine.side * work.size * work.input_bytes
    a_query = work.size * work.input_bytes + (work.size + 2) * work.output_bytes
    fitting = max(0, machine.on_chip_bytes - key_tile) // (a_query * machine.side)
    return max((n for n in range(1, min(tiles, fitting) + 1) if tiles % n == 0), default=1)


def fusemax(work: Work, machine: Machine) -> Cost:
    """Return the cost of FuseMax on arrays of ``machine.side``, each beside a one-dimensional one."""
    side = machine.side
    query_tiles = -(-work.queries // side)
    passes = -(-query_tiles // resident_tiles(work, machine))
    moved = work.heads * (work.query_bytes + work.result_bytes + passes * 2 * work.key_bytes)
    compute = work.heads * query_tiles * tile_cycles(-(-work.keys // side), work.size) / machine.arrays(side)
    return Cost(cycles=max(compute, machine.memory_cycles(moved)), moved_bytes=moved)
