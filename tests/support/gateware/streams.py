"""Streams in Amaranth's simulator: put, get, the rule checker, and one call that runs a whole exchange.

Tests pass the seeds.  Stalls are drawn cycle by cycle: a stall of 0.95 means long pauses and short bursts.
Payloads are plain Python both ways: integers, or (nested) dicts and lists for structured shapes.

Loops await one tick at a time.  Amaranth's ``until``, ``repeat`` and ``async for`` are generators: when one
testbench raises, Python warns of those that wait inside one, which fails the run.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import random
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from amaranth.hdl import Cat, Value
from amaranth.lib import data
from amaranth.sim import Simulator

from tests.support.gateware import waves
from tests.support.gateware.quick import quick_bits, quick_payload

#: Share of cycles in which a side holds back: the grid every block is tested on, on every side.
STALLS = (0.0, 0.3, 0.7, 0.95)

#: Simulated clock period; only its ratio to `simulate`'s limit matters.
PERIOD_SECONDS = 1e-8

#: Attribute of a simulation with the signals that are set together, joined.
_JOINED = "quick_joined"
#: Most sets of signals that a simulation keeps: a bench may set others in every cycle.
_MOST_JOINED = 64

Testbench = Callable[[Any], Awaitable[None]]

#: Sides of streams that the running simulation has not finished: named when it is stuck.
_UNFINISHED: contextvars.ContextVar[list[_Player] | None] = contextvars.ContextVar("unfinished", default=None)


class StreamError(AssertionError):
    """A stream broke its rule: ``valid`` fell, or the payload changed, before the transfer."""


class Stuck(AssertionError):
    """An exchange did not end within its cycle limit; the message names the streams that wait."""


def seeds(quick: int = 1, soak: int = 2) -> list[Any]:
    """Return ``quick`` seeds for `make test`, and the rest up to ``soak`` marked for `make soak`.

    The default is for tests over the 16 points of a two-sided stall grid: 32 runs of each configuration.
    """
    return [pytest.param(seed, marks=[pytest.mark.soak] if seed >= quick else []) for seed in range(soak)]


def grid(*axes: Sequence[Any], soak: int = 1) -> list[Any]:
    """Return the points of a grid with a seed each, most of them for `make soak`.

    In `make test` seed 0 runs on every fourth point.  Of three axes that is an orthogonal array, with each
    pair of values of any two; of two axes it has each value.  The soak has ``soak`` seeds on every point.
    """
    return [
        pytest.param(*point, seed, marks=[] if seed == 0 and sum(place) % 4 == 0 else [pytest.mark.soak])
        for place in itertools.product(*(range(len(axis)) for axis in axes))
        for point in [[axis[at] for axis, at in zip(axes, place, strict=True)]]
        for seed in range(soak)
    ]


def plain(value: Any) -> Any:
    """Turn a payload of the simulator into integers, dicts and lists."""
    if isinstance(value, data.Const):
        return quick_payload(value.shape(), value.as_bits())
    return value


def bits_of(signal: Any, payload: Any) -> int:
    """Return a payload as the bits of its signal."""
    if isinstance(signal, Value) and isinstance(payload, int):  # the common case, in every cycle
        return payload & (1 << len(signal)) - 1
    return quick_bits(signal.shape(), payload)


def payload_of(signal: Any, bits: int) -> Any:
    """Return the bits of a signal as its payload."""
    return quick_payload(signal.shape(), bits)


def set_all(ctx: Any, values: Iterable[tuple[Any, Any]]) -> None:
    """Set signals at once, so that the design settles once; the last value of a signal counts."""
    pairs = list(values)
    joined = ctx._engine.__dict__.setdefault(_JOINED, {})
    known = joined.get(key := tuple(id(signal) for signal, _ in pairs))
    if known is None:
        signals = [signal for signal, _ in pairs]
        known = Cat(signals), [len(Value.cast(signal)) for signal in signals], signals
        if len(joined) < _MOST_JOINED:  # with the signals: their numbers are then nobody else's
            joined[key] = known
    together = at = 0
    for (signal, payload), width in zip(pairs, known[1], strict=True):
        together |= bits_of(signal, payload) << at
        at += width
    ctx.set(known[0], together)


@dataclass
class _Rule:
    """The stream rule, watched on one stream."""

    name: str
    waiting: bool = False
    expected: int = 0
    cycle: int = 0

    def see(self, valid: int, ready: int, payload: int, reset: bool) -> None:
        """Take one cycle; raises `StreamError`."""
        if self.waiting and not valid:
            raise StreamError(f"{self.name}: valid fell before the transfer, cycle {self.cycle}")
        if self.waiting and payload != self.expected:
            raise StreamError(
                f"{self.name}: payload changed from {self.expected:#x} to {payload:#x} before the transfer, "
                f"cycle {self.cycle}"
            )
        self.waiting, self.expected = bool(valid and not ready and not reset), payload
        self.cycle += 1


@dataclass(eq=False)
class _Player:
    """One side of a stream: the pins it drives and samples, the lowest bit of each its handshake."""

    name: str
    pins: Value
    seen: Value
    total: int | None  #: Items to transfer, where their number is known.
    waits_for: str  #: The handshake signal of the design's side.
    play: Generator[int, int, None]  #: Yields the pins of each cycle, and is sent the sample of it.
    transferred: int = 0
    rule: _Rule | None = None

    def __str__(self) -> str:
        of = "" if self.total is None else f" of {self.total}"
        return f"{self.name} waits for {self.waits_for} after {self.transferred}{of} items"


def _name_of(stream: Any) -> str:
    return str(stream.valid.name).removesuffix("valid").rstrip("_") or "stream"


def _sender(name: str, stream: Any, payloads: Iterable[Any], stall: float, seed: int) -> _Player:
    def play() -> Generator[int, int, None]:
        rng = random.Random(f"put {seed}")
        pins = 0
        for payload in payloads:
            while rng.random() < stall:
                yield pins & ~1
            pins = bits_of(stream.payload, payload) << 1 | 1
            while not (yield pins):
                pass
            player.transferred += 1

    total = len(payloads) if isinstance(payloads, Sequence) else None
    player = _Player(name, Cat(stream.valid, stream.payload), stream.ready, total, "ready", play())
    return player


def _receiver(
    name: str, stream: Any, count: int, stall: float, seed: int, received: list[Any], cycles: list[int]
) -> _Player:
    def play() -> Generator[int, int, None]:
        rng = random.Random(f"get {seed}")
        cycle = 0
        while len(received) < count:
            ready = rng.random() >= stall
            seen = yield int(ready)
            if ready and seen & 1:
                received.append(payload_of(stream.payload, seen >> 1))
                cycles.append(cycle)
                player.transferred += 1
            cycle += 1

    player = _Player(name, stream.ready, Cat(stream.valid, stream.payload), count, "valid", play())
    return player


async def _drive(ctx: Any, players: Sequence[_Player]) -> None:
    """Play all sides at once; every cycle is settled once, however many there are."""
    pins = Cat(player.pins for player in players)
    tick = ctx.tick().sample(Cat(player.seen for player in players))
    driven, running = [0] * len(players), set(range(len(players)))
    unfinished = _UNFINISHED.get()
    if unfinished is not None:
        unfinished += players
    widths = [(len(player.pins), len(player.seen)) for player in players]

    def advance(at: int, step: Callable[[], int]) -> None:
        try:
            driven[at] = step()
        except StopIteration:
            driven[at] &= ~1
            running.remove(at)
            if unfinished is not None:
                unfinished.remove(players[at])

    def settle() -> None:
        together = offset = 0
        for (width, _), now in zip(widths, driven, strict=True):
            together |= now << offset
            offset += width
        ctx.set(pins, together)

    for at in range(len(players)):
        advance(at, functools.partial(next, players[at].play))
    settle()
    while running:
        _, reset, together = await tick
        for at, (_, width) in enumerate(widths):
            seen = together & (1 << width) - 1
            together >>= width
            if (rule := players[at].rule) is not None:
                rule.see(seen & 1, driven[at] & 1, seen >> 1, reset)
            if at in running:
                advance(at, functools.partial(players[at].play.send, seen))
        settle()


async def put(ctx: Any, stream: Any, payloads: Iterable[Any], *, stall: float = 0.0, seed: int = 0) -> None:
    """Send ``payloads`` in order, pausing before each with probability ``stall`` a cycle.

    Back to back when ``stall`` is 0.  Once ``valid`` is up it stays, with its payload, until the transfer.
    """
    await _drive(ctx, [_sender(_name_of(stream), stream, payloads, stall, seed)])


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

    ``ready`` is drawn anew in every cycle, for any ``valid``.  A block may wait for ``ready`` before it
    raises ``valid``; a block that drops an item when ``ready`` falls fails.  ``cycles`` receives the cycle of
    each transfer, counted from the start of this call.
    """
    received: list[Any] = []
    at = [] if cycles is None else cycles
    await _drive(ctx, [_receiver(_name_of(stream), stream, count, stall, seed, received, at)])
    return received


def rule_checker(stream: Any, name: str) -> Testbench:
    """Make a background testbench that raises `StreamError` when ``stream`` breaks its rule."""

    async def watch(ctx: Any) -> None:
        rule = _Rule(name)
        tick = ctx.tick().sample(stream.valid, stream.ready, Value.cast(stream.payload))
        while True:
            _, reset, valid, ready, payload = await tick
            rule.see(valid, ready, payload, reset)

    return watch


@functools.lru_cache(maxsize=8)
def built(kind: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return a component, the same one for the same arguments: `simulate` compiles it once.

    Not for a component whose parts a test replaces by mutants.
    """
    return kind(*arguments, **options)


@functools.lru_cache(maxsize=8)
def _simulator(dut: Any, critical: int, background: int) -> tuple[Simulator, list[Testbench]]:
    """Return the simulator of a design, compiled once, and a list that its testbenches are put into to
    run.
    """
    simulator = Simulator(dut)
    simulator.add_clock(PERIOD_SECONDS)
    current: list[Testbench] = []

    def add(at: int) -> None:
        async def play(ctx: Any) -> None:
            await current[at](ctx)

        simulator.add_testbench(play, background=at >= critical)

    for at in range(critical + background):
        add(at)
    return simulator, current


def simulate(
    dut: Any, *testbenches: Testbench, background: Iterable[Testbench] = (), limit: int = 50_000
) -> None:
    """Run ``dut`` from reset until every testbench has ended.

    A design that runs again, as the same object, is not compiled again.  ``WAVES=x.vcd`` in the environment
    writes its waveforms.  Raises `Stuck` after ``limit`` cycles.
    """

    unfinished: list[_Player] = []

    async def deadline(ctx: Any) -> None:
        await ctx.delay(limit * PERIOD_SECONDS)
        waiting = "; ".join(map(str, unfinished)) or "no stream waits"
        raise Stuck(f"not done after {limit} cycles: {waiting}")

    benches = [*testbenches, *background, deadline]
    simulator, current = _simulator(dut, len(testbenches), len(benches) - len(testbenches))
    if current:
        simulator.reset()
    current[:] = benches
    token = _UNFINISHED.set(unfinished)
    try:
        waves.run(simulator)
    finally:
        _UNFINISHED.reset(token)


@dataclass
class Side:
    """One stream of an exchange: an input with its items, or an output with their number."""

    stream: Any  #: A stream of the block.
    items: Sequence[Any] | None = None  #: Payloads to send, for an input.
    count: int = 0  #: Payloads to take, for an output.
    stall: float = 0.0  #: Probability of a pause in each cycle.
    received: list[Any] = field(default_factory=list)  #: Payloads taken from an output.
    cycles: list[int] = field(default_factory=list)  #: Cycle of each of these transfers.

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
    """Run all ``sides`` of ``dut`` at once, with the rule checked on outputs; results are left there."""

    async def everything(ctx: Any) -> None:
        await exchange_within(ctx, sides, seed=seed)

    simulate(dut, everything, background=background, limit=limit)


async def exchange_within(ctx: Any, sides: Mapping[str, Side], *, seed: int = 0) -> None:
    """Run all ``sides`` at once, within a testbench that does other things before and after."""

    def player(name: str, side: Side) -> _Player:
        own = hash_seed(seed, name)
        if side.items is not None:  # senders keep the rule
            return _sender(name, side.stream, side.items, side.stall, own)
        receiver = _receiver(name, side.stream, side.count, side.stall, own, side.received, side.cycles)
        receiver.rule = _Rule(name)
        return receiver

    await _drive(ctx, [player(name, side) for name, side in sides.items()])


def hash_seed(seed: int, name: str) -> int:
    """Draw a seed for each side, equal in every run whatever ``PYTHONHASHSEED`` is."""
    return random.Random(f"{seed}/{name}").getrandbits(32)
