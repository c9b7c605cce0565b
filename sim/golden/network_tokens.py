"""Golden model of a network's operators on tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from hw.attention.driver.formats import output_scaling, scaling
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.mask import Mask
from hw.network.graph.network import Attention, Gather, LayerNorm, TokenMean, Value
from hw.network.graph.norms import norm_rows
from hw.network.graph.sums import wide_mean_rule
from sim.golden.attention.model import attention_job
from sim.golden.normalization import layer_norm as rows_normalized
from sim.golden.program_attention import DEFAULT as ARITHMETIC


def gathered(operator: Gather, read: list[Any], before: list[Value], after: Value) -> Any:
    """Return rows of a table."""
    return operator.table[read[0][:, :, 0]]


def layer_norm(operator: LayerNorm, read: list[Any], before: list[Value], after: Value) -> Any:
    """Return LayerNorm by its formula in integers."""
    rows, epsilon = norm_rows(operator, before[0], after)
    stored = read[0].astype(np.int16)
    found = [rows_normalized(each, rows, epsilon=epsilon, bits=after.bits) for each in stored]
    return np.stack(found)


def attention(operator: Attention, read: list[Any], before: list[Value], after: Value) -> Any:
    """Return attention of each segment by the core's own arithmetic."""
    scales = [value.scale for value in before]
    score = scaling(softmax_scale=operator.softmax_scale, q_scale=scales[0], k_scale=scales[1])
    output = output_scaling("int8", scales[2] / after.scale)
    parts, first = [], 0
    for tokens in operator.segments:
        own = [
            stored[0, first : first + tokens].reshape(tokens, operator.heads, -1).transpose(1, 0, 2)
            for stored in read
        ]
        job = IntegerJob(
            q=own[0], k=own[1], v=own[2], scale=score, output=output, mask=Mask(causal=operator.causal)
        )
        parts.append(attention_job(job, ARITHMETIC).transpose(1, 0, 2).reshape(tokens, -1))
        first += tokens
    return np.concatenate(parts)[np.newaxis]


def token_mean(operator: TokenMean, read: list[Any], before: list[Value], after: Value) -> Any:
    """Return the mean of each segment, or its first token: its exact sum times a factor."""
    firsts = np.cumsum((0, *operator.segments[:-1]))
    stored = read[0].astype(np.int64)
    sums = stored[:, firsts] if operator.first else np.add.reduceat(stored, firsts, axis=1)
    counts = [1 if operator.first else tokens for tokens in operator.segments]
    nothing = np.zeros_like(sums[:, :1])
    means = [
        wide_mean_rule(before[0], after, count=tokens).results(
            sums[:, number : number + 1], nothing, zeros=(0, 0), zero=0
        )
        for number, tokens in enumerate(counts)
    ]
    return np.concatenate(means, axis=1)
