"""Saturation of an attention launch: results are bit-exact, but useless where numbers leave their formats."""

import numpy as np

from hw.attention.driver.job import Piece
from sim.engines.attention.job import AttentionJob
from sim.golden.products import serial_product
from sim.run.adapter import SATURATED

_LOGIT_BITS = 24
_BLOCK_SCORES = 2**21  # scores held at a time


def saturation(job: AttentionJob) -> dict[str, float]:
    """Return the shares of clamped numbers, by name; shares of 0 are left out.

    They are of logits, of visible pairs and before any cap; of results; and of inputs with a given step.
    """
    # The padding of rows does not count.
    given = job.exact[..., : job.inputs.value_size].size
    results = sum(_results(job, piece) for piece in job.pieces) / given
    logits = 0.0
    # A cap limits logits as specified; elsewhere scales may be too small for any tensors to saturate one.
    most = 2 ** (_LOGIT_BITS - 1) - 1
    uncapped = [] if job.inputs.cap is not None else job.pieces
    pieces = [piece for piece in uncapped if piece.integers.q.shape[2] * 2.0**14 * _factor(piece) >= most]
    if pieces:
        each = [piece.integers for piece in job.pieces]
        pairs = sum(len(own.q) * own.mask.pairs(own.q.shape[1], own.k.shape[1]) for own in each)
        logits = sum(map(_logits, pieces)) / max(1, pairs)
    found = {"logits": logits, "results": results, "inputs": job.inputs.clipped_ratio}
    return {f"{SATURATED}{name}_ratio": ratio for name, ratio in found.items() if ratio}


def _results(job: AttentionJob, piece: Piece) -> int:
    output = piece.integers.output
    if output.kind == "bfloat16":
        return 0
    ends = np.iinfo(output.dtype)
    steps = job.exact[piece.place] / (job.inputs.channels[piece.share.heads, None] * piece.output_step)
    return int(((steps >= ends.max + 0.5) | (steps < ends.min - 0.5)).sum())


def _factor(piece: Piece) -> float:
    return float(piece.integers.scale.multiplier * 2.0**-piece.integers.scale.shift)


def _logits(piece: Piece) -> int:
    integers, count = piece.integers, 0
    (heads, queries, _), keys = integers.q.shape, integers.k.shape[1]
    half, columns = 2.0 ** (_LOGIT_BITS - 1), np.arange(keys)
    step = max(1, _BLOCK_SCORES // keys)
    for head in range(heads):
        key_rows = integers.k[head // (heads // len(integers.k))].astype(np.float64)
        for start in range(0, queries, step):
            rows = np.arange(start, min(start + step, queries))
            logits = serial_product(integers.q[head, rows] * _factor(piece), key_rows.T)
            beyond = (logits >= half - 0.5) | (logits < -half - 0.5)
            count += int((beyond & integers.mask.visible(rows, columns, queries, keys)).sum())
    return count
