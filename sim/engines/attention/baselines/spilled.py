"""Schedules that keep the matrix of scores in memory: two passes over it, and unfused operators with three.

*Two passes*: scores are written, while each row's maximum and sum stay on chip.  Then they are read once, and
exponentiated for the weighted sums.

*Three passes* (maximum; sum of exponentials; division) between two matrix products are the unfused baseline
of FuseMax (arXiv 2406.10491; ``src/accel/unfused.py`` and ``stable_softmax.py`` of its artifact).  As many
vector lanes as the array has columns take four cycles an element, and the phases do not overlap.
"""

import math

from sim.engines.attention.baselines.work import Cost, Machine, Work

#: Cycles of a vector lane for an element: maximum, exponential of the difference, sum, division; pipelined.
_SOFTMAX_CYCLES = 4


def _matrix_passes(work: Work, machine: Machine) -> int:
    """Count the reads of keys (or values) for one product.

    They are read once if all of them, or all rows of the other side, fit on chip. Otherwise they are read
    once for each block of rows that fits.
    """
    if work.key_bytes <= machine.on_chip_bytes:
        return 1
    rows = max(1, machine.on_chip_bytes // (work.size * work.input_bytes))
    return -(-work.queries // rows)


def two_pass(work: Work, machine: Machine) -> Cost:
    """Return the cost of two passes, each as long as its multiplications or its bytes take."""
    passes = _matrix_passes(work, machine)
    first = work.heads * (work.query_bytes + passes * work.key_bytes + work.matrix_bytes)
    second = work.heads * (work.matrix_bytes + passes * work.key_bytes + work.result_bytes)
    product = work.useful_macs / 2 / machine.macs
    cycles = sum(max(product, machine.memory_cycles(moved)) for moved in (first, second))
    return Cost(cycles=cycles, moved_bytes=first + second)


def softmax_bytes(work: Work, machine: Machine) -> int:
    """Return the bytes of the softmax alone.

    Each row is read and written once; its part that does not fit on chip is read again in the second and
    third pass.
    """
    row = work.keys * work.input_bytes
    again = max(0, row - machine.on_chip_bytes)
    return work.heads * work.queries * (2 * row + 2 * again)


def three_pass(work: Work, machine: Machine) -> Cost:
    """Return the cost of unfused operators."""
    passes = _matrix_passes(work, machine)
    scores = work.heads * (work.query_bytes + passes * work.key_bytes + work.matrix_bytes)
    softmax = softmax_bytes(work, machine)
    values = work.heads * (work.matrix_bytes + passes * work.key_bytes + work.result_bytes)
    product = work.useful_macs / 2 / machine.macs
    lanes = machine.side * machine.arrays(machine.side)
    elements = math.prod((work.heads, work.queries, work.keys))
    phases = ((product, scores), (elements * _SOFTMAX_CYCLES / lanes, softmax), (product, values))
    cycles = sum(max(compute, machine.memory_cycles(moved)) for compute, moved in phases)
    return Cost(cycles=cycles, moved_bytes=scores + softmax + values)
