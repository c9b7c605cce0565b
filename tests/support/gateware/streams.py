"""Streams in Amaranth's simulator: put, get, the rule checker, and one call that runs a whole exchange.

Randomness comes from seeds given by the test; every stall pattern is drawn cycle by cycle, so that a stall of
0.95 gives long pauses and short bursts.  Payloads are plain Python: integers, or (nested) dicts and lists for
structured shapes, both ways.

Loops await one tick at a time: Amaranth's ``until``, ``repeat`` and ``async for`` are generators, and a
testbench that is abandoned inside one (because another one raised) makes Python warn, which fails the run.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from amaranth.hdl import Value
from amaranth.lib import data
from amaranth.sim import Simulator

#: Share of cycles in which a side holds back: the grid every block is tested on, on every side.
STALLS = (0.0, 0.3, 0.7, 0.95)

#: Simulated clock period; only its ratio to `simulate`'s limit matters.
PERIOD_SECONDS = 1e-8

Testbench = Callable[[Any], Awaitable[None]]


class StreamError(AssertionError):
    """A stream broke its rule: ``valid`` fell, or the payload changed, before the transfer."""


class Stuck(AssertionError):
    """An exchange did not end within its cycle limit."""


def seeds(quick: int = 1, soak: int = 13) -> list[Any]:
    """Give ``quick`` seeds for `make test`, and the rest up to ``soak`` marked for `make soak`.

    The default is for tests over the 16 points of a two-sided stall grid: 208 runs of each configuration.
    """
    return [pytest.param(seed, marks=[pytest.mark.soak] if seed >= quick else []) for seed in range(soak)]


def grid(*axes: Sequence[Any], soak: int = 13) -> list[Any]:
    """Give the points of a grid with a seed each, most of them for `make soak`.

    In `make test` seed 0 runs on every fourth point, so that each pair of values of any two axes occurs where
    there are three (an orthogonal array), and each value where there are two; the soak has ``soak`` seeds on
    every point.
    """
    return [
        pytest.param(*point, seed, marks=[] if seed == 0 and sum(place) % 4 == 0 else [pytest.mark.soak])
        for place in itertools.product(*(range(len(axis)) for axis in axes))
        for point in [[axis[at] for axis, at in zip(axes, place, strict=True)]]
        for seed in range(soak)
    ]


def plain(value: Any) -> Any:
    """Turn what the simulator gives for a payload into integers, dicts and lists."""
    if isinstance(value, data.Const):
        layout = value.shape()
        if isinstance(layout, data.ArrayLayout):
            return [plain(value[index]) for index in range(layout.length)]
        return {name: plain(value[name]) for name, _ in layout}
    return value


async def put(ctx: Any, stream: Any, payloads: Iterable[Any], *, stall: float = 0.0, seed: int = 0) -> None:
    """Send ``payloads`` in order, pausing before each with probability ``stall`` a cycle.

    Back to back when ``stall`` is 0.  Once ``valid`` is up it stays, with its payload, until the transfer.
    """
    rng = random.Random(f"put {seed}")
    for payload in payloads:
        while rng.random() < stall:
            await ctx.tick()
        ctx.set(stream.payload, payload)
        ctx.set(stream.valid, 1)
        ready = False
        while not ready:
            _, _, ready = await ctx.tick().sample(stream.ready)
        ctx.set(stream.valid, 0)


async def get(
    ctx: Any,
    stream: Any,
    count: int,
    *,
    stall: float = 0.0,
    seed: int = 0,
    cycles: list[int] | None = None,
) -> list[Any]:
    """Receive ``count`` payloads, not ready with probability ``stall`` a cycle.

    ``ready`` is drawn anew in every cycle, whatever ``valid`` is: a block that waits for ``ready`` before it
    raises ``valid`` still works, one that drops an item when ``ready`` falls does not.

    Parameters
    ----------
    cycles
        When given, receives the cycle number of each transfer, counted from the start of this call.
    """
    rng = random.Random(f"get {seed}")
    received: list[Any] = []
    cycle = 0
    while len(received) < count:
        ready = rng.random() >= stall
        ctx.set(stream.ready, ready)
        _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
        if ready and valid:
            received.append(plain(payload))
            if cycles is not None:
                cycles.append(cycle)
        cycle += 1
    ctx.set(stream.ready, 0)
    return received


def rule_checker(stream: Any, name: str) -> Testbench:
    """Make a background testbench that raises `StreamError` when ``stream`` breaks its rule."""

    async def watch(ctx: Any) -> None:
        waiting, expected, cycle = False, 0, 0
        sampled = (stream.valid, stream.ready, Value.cast(stream.payload))
        while True:
            _, reset, valid, ready, payload = await ctx.tick().sample(*sampled)
            if waiting and not valid:
                raise StreamError(f"{name}: valid fell before the transfer, cycle {cycle}")
            if waiting and payload != expected:
                raise StreamError(
                    f"{name}: payload changed from {expected:#x} to {payload:#x} before the transfer, "
                    f"cycle {cycle}"
                )
            waiting, expected = bool(valid and not ready and not reset), payload
            cycle += 1

    return watch


def simulate(
    dut: Any, *testbenches: Testbench, background: Iterable[Testbench] = (), limit: int = 50_000
) -> None:
    """Run ``dut`` until every testbench has ended.

    Raises
    ------
    Stuck
        After ``limit`` cycles.
    """

    async def deadline(ctx: Any) -> None:
        await ctx.delay(limit * PERIOD_SECONDS)
        raise Stuck(f"not done after {limit} cycles")

    simulator = Simulator(dut)
    simulator.add_clock(PERIOD_SECONDS)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    for testbench in [*background, deadline]:
        simulator.add_testbench(testbench, background=True)
    simulator.run()


@dataclass
class Side:
    """One stream of an exchange: what is sent into it, or how many items are taken from it.

    Parameters
    ----------
    stream
        A stream of the block, as the block has it.
    items
        Payloads to send, for an input.
    count
        Payloads to take, for an output.
    stall
        Probability of a pause, each cycle.

    Members
    -------
    received : list
        Payloads taken from an output.
    cycles : list of int
        Cycle of each of these transfers.
    """

    stream: Any
    items: Sequence[Any] | None = None
    count: int = 0
    stall: float = 0.0
    received: list[Any] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)

    @property
    def gapless(self) -> bool:
        """Whether the received items came in consecutive cycles."""
        return all(b - a == 1 for a, b in zip(self.cycles, self.cycles[1:], strict=False))


def exchange(
    dut: Any,
    sides: Mapping[str, Side],
    *,
    seed: int = 0,
    background: Iterable[Testbench] = (),
    limit: int = 50_000,
) -> None:
    """Run all ``sides`` of ``dut`` at once, with the rule checker on each; results are left in the sides."""

    def testbench(name: str, side: Side) -> Testbench:
        async def send(ctx: Any) -> None:
            assert side.items is not None
            await put(ctx, side.stream, side.items, stall=side.stall, seed=hash_seed(seed, name))

        async def receive(ctx: Any) -> None:
            side.received += await get(
                ctx,
                side.stream,
                side.count,
                stall=side.stall,
                seed=hash_seed(seed, name),
                cycles=side.cycles,
            )

        return receive if side.items is None else send

    simulate(
        dut,
        *(testbench(name, side) for name, side in sides.items()),
        background=[*background, *(rule_checker(side.stream, name) for name, side in sides.items())],
        limit=limit,
    )


def hash_seed(seed: int, name: str) -> int:
    """Give each side its own seed, equal in every run whatever ``PYTHONHASHSEED`` is."""
    return random.Random(f"{seed}/{name}").getrandbits(32)
