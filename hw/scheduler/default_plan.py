"""The plan that a kernel executes when none is given: a real layer in 96 KiB, a quarter of what it asks for.

It is made by ``python -m hw.scheduler.default_plan``: the network `minilm_layer` in a quarter of M_R, the
working set of its largest operator, in the fewest cycles.  Operators are pipelined in pairs and streamed
through windows, and what passes between them is written to memory and read again.

It is planned in words of 128 bytes.  All its tensors are whole ones of these, so that it is a plan in every
narrower word as well, of the same bytes; only its cycles are others.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from hw.scheduler.plan.documents import plan_to_json, read_plan
from hw.scheduler.plan.options import ON_BOARD
from hw.scheduler.plan.plan import Plan

_PATH = Path(__file__).with_name("default_plan.json")
_NETWORK, _SCRATCHPAD = "minilm_layer", "0.25M_R"
_WORD_BYTES = 128


def default_plan(word_bytes: int) -> Plan:
    """Give the plan in words of ``word_bytes``, a power of two up to 128."""
    return replace(_shipped(), word_bytes=word_bytes)


@functools.cache
def _shipped() -> Plan:
    return read_plan(_PATH)


def make_default_plan() -> Plan:
    """Plan it anew."""
    from hw.scheduler.plan_model import plan_model

    return plan_model(_NETWORK, _SCRATCHPAD, word_bytes=_WORD_BYTES, objective=ON_BOARD)


if __name__ == "__main__":
    _PATH.write_text(plan_to_json(make_default_plan()), encoding="utf-8")
