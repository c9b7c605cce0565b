"""Attention as commands: some heads of one segment each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from hw.attention.driver.formats import output_scaling, scaling
from hw.network.commands import AttentionCommand, HeadTensor
from hw.network.compile.form import GRANULE, Form
from hw.network.graph.network import Attention, Value

#: Most commands of an attention.  Fewer heads each would begin sooner, and fill the kernel's list.
_COMMANDS = 96


def attention_commands(
    operator: Attention,
    values: Sequence[Value],
    after: Value,
    places: Sequence[tuple[int, Form]],
    out: tuple[int, Form],
) -> Iterator[AttentionCommand]:
    """Yield the commands of an attention: some heads of all segments, then the next heads.

    ``values``: queries, keys and values. ``places``, ``out``: the granule at which token 0 of each of them,
    and of the results, begins, and its form.  Operands in one place stand there head by head.
    """
    heads, segments = operator.heads, operator.segments
    granules = values[0].shape[2] // heads // GRANULE
    joined = len({base for base, _ in places}) == 1
    # Distance of heads, and the first granule of each operand.
    step, firsts = (3 * granules, (0, granules, 2 * granules)) if joined else (granules, (0, 0, 0))
    starts = [base + first for (base, _), first in zip(places, firsts, strict=True)]
    scores = scaling(softmax_scale=operator.softmax_scale, q_scale=values[0].scale, k_scale=values[1].scale)
    results = output_scaling("int8", values[2].scale / after.scale)
    group = min(heads, -(-heads * len(segments) // _COMMANDS))

    def tensor(base: int, form: Form, *, token: int, head: int, step: int) -> HeadTensor:
        return HeadTensor(base=base + token * form.granules + head * step, pitch=form.granules, step=step)

    for head in range(0, heads, group):
        for token, tokens in zip(itertools.accumulate(segments, initial=0), segments, strict=False):
            q, k, v = (
                tensor(base, form, token=token, head=head, step=step)
                for base, (_, form) in zip(starts, places, strict=True)
            )
            yield AttentionCommand(
                heads=min(group, heads - head),
                queries=tokens,
                keys=tokens,
                head_dim=granules * GRANULE,
                causal=operator.causal,
                q=q,
                k=k,
                v=v,
                out=tensor(*out, token=token, head=head, step=granules),
                multiplier=scores.multiplier,
                shift=scores.shift,
                output_multiplier=results.multiplier,
                output_shift=results.shift,
            )
