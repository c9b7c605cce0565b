"""The plan that a kernel executes when none is given: a real layer in 96 KiB, a quarter of what it asks for.

It is ``plan_model("minilm_layer", "0.25M_R", word_bytes=128, objective=ON_BOARD)``: in a quarter of M_R, the
working set of the largest operator, in the fewest cycles.  Operators are pipelined in pairs and streamed
through windows, and what passes between them is written to memory and read again.

It is planned in words of 128 bytes.  All its tensors are whole ones of these, so that it is a plan in every
narrower word as well, of the same bytes; only its cycles are others.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from hw.scheduler.plan.documents import read_plan
from hw.scheduler.plan.plan import Certificate, Plan
from hw.scheduler.program.lower import lower
from hw.scheduler.program.timing.timeline import predict

_PATH = Path(__file__).with_name("default_plan.json")


@functools.cache
def default_plan(word_bytes: int) -> Plan:
    """Return the plan in words of ``word_bytes``, a power of two up to 128; what is proven is proven of words
    of 128 bytes only.
    """
    plan = read_plan(_PATH)
    if word_bytes == plan.word_bytes:
        return plan
    unproven = Certificate(
        claim="bound 0 bytes, not proven", bound_avoidable_bytes=0, order_bound_avoidable_bytes=0, stages=()
    )
    options = {**plan.options, "word_bytes": word_bytes}
    plan = replace(plan, word_bytes=word_bytes, options=options, certificate=unproven)
    played = predict(lower(plan))
    totals = replace(plan.totals, predicted_cycles=played.cycles_total, exposed_cycles=played.exposed_cycles)
    return replace(plan, totals=totals)
