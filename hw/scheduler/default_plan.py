"""The default plan of a launch: a transformer layer in 96 KiB, a quarter of its largest working set (M_R).

It is ``plan_model("minilm_layer", "0.25M_R", word_bytes=128, objective=ON_BOARD)``.  Operators are pipelined
in pairs and streamed through windows; activations between the pairs are spilled to memory and read again.

Its tensors are multiples of 128 bytes, the widest word.  So it is valid in every narrower word, with the same
bytes and other cycles.
"""

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
    """Return the plan in words of ``word_bytes``, a power of two up to 128; certified for 128 only."""
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
