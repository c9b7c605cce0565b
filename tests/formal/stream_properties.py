"""Property sets of streams: the rule every stream keeps, and first in, first out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value

from tests.support.proofs.formal import check, free, reach, suppose

Claim = Callable[[Module, Any, str], None]


def stream_rule(m: Module, stream: Any, claim: Claim, name: str) -> None:
    """State that an offered item stays offered, and stays as it is, until it is taken.

    Parameters
    ----------
    claim
        `check` for a stream the block sends, `suppose` for one it receives.
    """
    offered = Signal(name=f"{name}_offered")
    payload = Signal(len(Value.cast(stream.payload)), name=f"{name}_before")
    m.d.sync += [offered.eq(stream.valid & ~stream.ready), payload.eq(Value.cast(stream.payload))]
    with m.If(offered):
        claim(m, stream.valid, f"{name}: valid holds until the transfer")
        claim(m, Value.cast(stream.payload) == payload, f"{name}: payload holds until the transfer")


def free_input(m: Module, stream: Any, name: str) -> None:
    """Drive a stream the block receives with anything that keeps the rule."""
    free(m, stream.valid, stream.payload)
    stream_rule(m, stream, suppose, name)


def free_output(m: Module, stream: Any, name: str) -> None:
    """Take from a stream the block sends at any time, and check that it keeps the rule."""
    free(m, stream.ready)
    stream_rule(m, stream, check, name)
    with m.If(stream.valid & ~stream.ready):
        reach(m, 1, f"{name}: an item waits")
    with m.If(stream.valid & stream.ready):
        reach(m, 1, f"{name}: an item passes")


def first_in_first_out(m: Module, i: Any, o: Any, *, capacity: int, latency: int) -> Signal:
    """State that ``o`` gives the items of ``i``, each once, in order, soon; the payload has two bits.

    A block that never looks at its payload treats every item alike, so it is enough to follow two of them:
    among items that are 0, a 1 goes in at any time, then a 2 at any later time (P. Wolper, POPL 1986).  Then
    the 1 and the 2 must come out once each in that order, and both must be out once as many items have left
    as came.  With so little to remember, PDR proves a 5-deep FIFO in 2 s without being told an invariant;
    following one item by its distance from the head takes a counter and 100 times as long.

    Parameters
    ----------
    capacity
        Most items the block holds.
    latency
        Most cycles an item waits behind nothing: held by the block, but nothing offered on ``o``.

    Returns
    -------
    Signal
        Number of items held, as counted outside the block.
    """
    push, pop = Signal(name="push"), Signal(name="pop")
    m.d.comb += [push.eq(i.valid & i.ready), pop.eq(o.valid & o.ready)]
    held = Signal(range(capacity + 2), name="held")
    m.d.sync += held.eq(held + push - pop)
    check(m, held <= capacity, "never holds more than its capacity")
    check(m, ~o.valid | (held != 0), "offers nothing it was not given")

    sent, seen = Signal(2, name="sent"), Signal(2, name="seen")
    given = Value.cast(i.payload)
    taken = Value.cast(o.payload)
    with m.If(i.valid):
        suppose(m, (given == 0) | (given == sent + 1) & (given != 3), "a 1, then a 2, among zeros")
    with m.If(push & (given != 0)):
        m.d.sync += sent.eq(given)
    with m.If(o.valid & (taken != 0)):
        check(m, taken == seen + 1, "the marked items come once each, in order")
    with m.If(pop & (taken != 0)):
        m.d.sync += seen.eq(taken)
    check(m, seen <= sent, "nothing comes out before it went in")
    with m.If(held == 0):
        check(m, seen == sent, "nothing is lost")
    reach(m, seen == 2, "both marked items pass")
    reach(m, held == capacity, "the block fills up")

    waiting = Signal(range(latency + 2), name="waiting")
    m.d.sync += waiting.eq(Mux((held != 0) & ~o.valid, waiting + 1, 0))
    check(m, waiting <= latency, "an item is offered in time")
    return held
