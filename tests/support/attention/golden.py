"""The golden model with all keys visible, one stream, 16-bit probabilities and int16 results."""

import numpy as np

from sim.golden.attention.formats import Arithmetic, Output
from sim.golden.attention.model import GoldenJob, attention_job


def attention(q, k, v, *, scale, fraction, tile_keys):
    """Give attention of every head: q ``[H, Nq, d]``; results are in units of ``v_scale * 2^-fraction``."""
    job = GoldenJob(q=q, k=k, v=v, scale=scale, output=Output(fraction=fraction))
    return attention_job(job, Arithmetic(tile_keys=tile_keys)).astype(np.int16, copy=False)
