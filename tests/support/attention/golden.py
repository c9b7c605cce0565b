"""The golden model with all keys visible, one stream, 16-bit probabilities and int16 results."""

import numpy as np

from hw.attention.driver.formats import Output
from hw.attention.driver.integers import IntegerJob
from sim.golden.attention.formats import Arithmetic
from sim.golden.attention.model import attention_job


def attention(q, k, v, *, scale, fraction, tile_keys):
    """Return attention of every head: q ``[H, Nq, d]``; results are in units of ``v_scale * 2^-fraction``."""
    job = IntegerJob(q=q, k=k, v=v, scale=scale, output=Output(fraction=fraction))
    return attention_job(job, Arithmetic(tile_keys=tile_keys)).astype(np.int16, copy=False)
