"""What every AXI channel obeys, and how a property set says who is under test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from tests.support.proofs.formal import check, suppose

#: ``check``: this side is under test.  ``suppose``: this side is the environment, its rules are relied on.
Role = Literal["check", "suppose"]
Rule = Callable[[Module, Any, str], None]

RULES: dict[str, Rule] = {"check": check, "suppose": suppose}


def inputs(signature: wiring.Signature) -> dict[str, wiring.Member]:
    """Return the members of a flat port as a bystander sees them: all of them inputs."""
    return {name: In(member.shape) for name, member in signature.members.items()}


def attach(m: Module, watcher: Any, port: Any) -> None:
    """Connect a property set to the ``port`` it watches, driving nothing of the port."""
    for name in port.signature.members:
        m.d.comb += getattr(watcher, name).eq(getattr(port, name))


def quiet_after_reset(m: Module, rule: Rule, name: str, valid: Value) -> None:
    """State that ``valid`` is low in the first cycle after reset."""
    fresh = Signal(name=f"{name}_fresh", init=1)
    m.d.sync += fresh.eq(0)
    with m.If(fresh):
        rule(m, ~valid, f"{name}valid is low after reset")


def channel(m: Module, rule: Rule, name: str, valid: Value, ready: Value, *payload: Value) -> None:
    """State the rules for whoever drives ``valid``: low after reset, stable until the transfer."""
    quiet_after_reset(m, rule, name, valid)
    waiting = Signal(name=f"{name}_waiting")
    before = Signal(len(Cat(payload)), name=f"{name}_before")
    m.d.sync += [waiting.eq(valid & ~ready), before.eq(Cat(payload))]
    with m.If(waiting):
        rule(m, valid, f"{name}valid stays up until the transfer")
        rule(m, before == Cat(payload), f"payload of {name} is stable until the transfer")


def transfers(m: Module, name: str, valid: Value, ready: Value) -> Signal:
    """Return a signal that is up in every cycle with a transfer."""
    moved = Signal(name=f"{name}_moved")
    m.d.comb += moved.eq(valid & ready)
    return moved


def difference(m: Module, name: str, *, limit: int, up: Value, down: Value) -> Signal:
    """Count ``up`` less ``down``, up to ``limit``; whoever can exceed that needs a rule against it."""
    count = Signal(range(limit + 2), name=name)
    m.d.sync += count.eq(count + up - down)
    return count


def patience(m: Module, rule: Rule, cycles: int, held: Value, message: str) -> Signal:
    """State that ``held`` is not up for more than ``cycles`` cycles on end; gives the counter."""
    count = Signal(range(cycles + 2))
    with m.If(~held):
        m.d.sync += count.eq(0)
    with m.Elif(count <= cycles):
        m.d.sync += count.eq(count + 1)
    rule(m, ~held | (count < cycles), message)
    return count
