"""ITA: scores in one pass, weighted values in a second, softmax in powers of two between them.

Islamoglu et al., "ITA: An Energy-Efficient Attention and Softmax Accelerator for Quantized Transformers",
ISLPED 2023 (arXiv 2307.03493).  Its RTL (``pulp-platform/ITA``, 1,024 multipliers), simulated with its own
bench, takes 8,193 cycles from the first score to the last weighted value of 256 queries and keys of 64
elements: one more than its multipliers need.  The matrix of probabilities, a byte each, is written and read
back.  Its accumulators suffice for 2,048 keys; the formula is used beyond.
"""

from sim.engines.attention.baselines.work import Cost, Machine, Work


def ita(work: Work, machine: Machine) -> Cost:
    """Return the cost of ITA, with ideal memory as in its bench."""
    moved = work.compulsory_bytes + 2 * work.heads * work.matrix_bytes
    return Cost(cycles=work.useful_macs / machine.macs + 1, moved_bytes=moved)
