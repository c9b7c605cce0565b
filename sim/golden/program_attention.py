"""Golden model of the attention command, on the bytes of a scratchpad."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hw.attention.driver.formats import Output, Scaling
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.mask import Mask
from hw.network.commands import AttentionCommand, HeadTensor
from sim.golden.attention.formats import Arithmetic
from sim.golden.attention.model import attention_job

_GRANULE = 16
#: Arithmetic of the network kernel's attention unit.
DEFAULT = Arithmetic(tile_keys=32, streams=1, probability_bits=20, exp_segments=16)


def attention(
    command: AttentionCommand, scratchpad: NDArray[np.int8], arithmetic: Arithmetic = DEFAULT
) -> None:
    """Execute a command on ``scratchpad``, of shape ``(granules, 16)``."""
    units = command.head_dim // _GRANULE
    places = {
        name: _places(tensor, command.heads, rows, units) % len(scratchpad)
        for name, tensor, rows in (
            ("q", command.q, command.queries),
            ("k", command.k, command.keys),
            ("v", command.v, command.keys),
            ("out", command.out, command.queries),
        )
    }
    q, k, v = (
        scratchpad[places[name]].reshape(command.heads, -1, command.head_dim) for name in ("q", "k", "v")
    )
    job = IntegerJob(
        q=q,
        k=k,
        v=v,
        scale=Scaling(multiplier=command.multiplier, shift=command.shift),
        output=Output(kind="int8", multiplier=command.output_multiplier, shift=command.output_shift),
        mask=Mask(causal=command.causal),
    )
    results = attention_job(job, arithmetic)
    scratchpad[places["out"]] = results.reshape(command.heads, command.queries, units, _GRANULE)


def _places(tensor: HeadTensor, heads: int, rows: int, units: int) -> NDArray[np.int64]:
    """Return the granule of each head, row and unit."""
    head, row, unit = np.ogrid[:heads, :rows, :units]
    return np.asarray(tensor.base + head * tensor.step + row * tensor.pitch + unit)
