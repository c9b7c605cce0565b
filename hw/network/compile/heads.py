"""Attention as commands: some heads of one segment each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from hw.attention.driver.formats import output_scaling, scaling
from hw.network.commands import AttentionCommand, HeadTensor
from hw.network.compile.form import GRANULE, Form
from hw.network.graph.network import Attention, Value


def attention_commands(
    operator: Attention,
    values: Sequence[Value],
    after: Value,
    places: Sequence[tuple[int, Form]],
    out: tuple[int, Form],
    *,
    columns: int,
) -> Iterator[AttentionCommand]:
    """Yield the commands of an attention: the heads of a column tile, segment after segment, at a time.

    ``values``: queries, keys and values. ``places``, ``out``: the granule at which token 0 of each of them,
    and of the results, begins, and its form. ``columns``: of the array, whose next product reads the results
    of a column tile as soon as they are complete.
    """
    head_dim = values[0].shape[2] // operator.heads
    step, group = head_dim // GRANULE, max(1, columns // head_dim)
    scores = scaling(softmax_scale=operator.softmax_scale, q_scale=values[0].scale, k_scale=values[1].scale)
    results = output_scaling("int8", values[2].scale / after.scale)
    firsts = itertools.accumulate(operator.segments, initial=0)
    segments = list(zip(firsts, operator.segments, strict=False))
    for head in range(0, operator.heads, group):
        for first, tokens in segments:
            q, k, v, o = (
                HeadTensor(base=base + first * form.granules + head * step, pitch=form.granules, step=step)
                for base, form in (*places, out)
            )
            yield AttentionCommand(
                heads=min(group, operator.heads - head),
                queries=tokens,
                keys=tokens,
                head_dim=head_dim,
                causal=operator.causal,
                q=q,
                k=k,
                v=v,
                out=o,
                multiplier=scores.multiplier,
                shift=scores.shift,
                output_multiplier=results.multiplier,
                output_shift=results.shift,
            )
