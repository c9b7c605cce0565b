"""Tables in HBM behind their ports, and their observation."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Value

from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import get, put, rule_checker, simulate


def base_of(port):
    return 0x1_0000_0000 * port + 0x3000


def raw(stream):
    """Return a stream with its payload as bits."""
    return SimpleNamespace(valid=stream.valid, ready=stream.ready, payload=Value.cast(stream.payload))


def memories_of(unit, **model):
    """Return the memory of each port, and the testbenches of all."""
    memories = [AxiMemory(port, seed=p, **model) for p, port in enumerate(unit.axi)]

    async def place(ctx):
        for p, base in enumerate(unit.base):
            ctx.set(base, base_of(p))

    return memories, [place, *(bench for memory in memories for bench in memory.testbenches())]


class Table:
    """Lines in rotation over ``ports`` ports from ``first`` on; ``swapped``: odd ones have halves swapped."""

    def __init__(self, memories, *, first=0, ports, line_bytes, swapped=False):
        self._memories, self._first, self._ports, self._line_bytes = memories, first, ports, line_bytes
        self._swapped = swapped

    def _place(self, line):
        port = self._first + line % self._ports
        place = line // self._ports
        flip = 32 if self._swapped and place % 2 else 0
        return port, base_of(port) + place * self._line_bytes, flip

    def content(self, line, length):
        """Return the first bytes of a line, as a signal's value."""
        port, address, flip = self._place(line)
        row = self._memories[port].content(address, self._line_bytes)
        return int.from_bytes(bytes(row[at ^ flip] for at in range(length)), "little")

    def write(self, written, line, at, data, strobe):
        """Record in ``written``, bytes by (port, address), the effect of a write."""
        port, address, flip = self._place(line)
        for n in range(strobe.bit_length()):
            if strobe >> n & 1:
                written[port, address + (at + n ^ flip)] = data >> 8 * n & 0xFF


def written_bytes(memories):
    """Return the written bytes, by (port, address)."""
    return {(p, at): byte for p, memory in enumerate(memories) for at, byte in memory.bytes.items()}


async def quiet(ctx, unit, cycles=60):
    """Wait until ``busy`` has been low for ``cycles`` cycles."""
    left = cycles
    while left:
        await ctx.tick()
        left = cycles if ctx.get(unit.busy) else left - 1


def check(**told):
    """Return a function that waits for quiet, and then compares these members."""

    async def then(ctx, unit):
        await quiet(ctx, unit)
        assert {name: ctx.get(getattr(unit, name)) for name in told} == told

    return then


async def erase(ctx, unit):
    """Erase, and wait until it is told."""
    ctx.set(unit.erase, 1)
    while not ctx.get(unit.erased):
        await ctx.tick()


def run(unit, puts, gets, *, background=(), then=quiet, seed=0):
    """Put (stream, items, stall) and get (stream, count, stall), all in parallel; return the items of
    each.
    """
    found = [[] for _ in gets]

    def sender(n, stream, items, stall):
        return lambda ctx: put(ctx, stream, items, stall=stall, seed=100 * seed + n)

    def receiver(n, stream, count, stall):
        async def take(ctx):
            found[n] = await get(ctx, stream, count, stall=stall, seed=100 * seed - n)

        return take

    async def rest(ctx):
        await then(ctx, unit)

    benches = [
        *(sender(n, *one) for n, one in enumerate(puts)),
        *(receiver(n, *one) for n, one in enumerate(gets)),
    ]
    rules = [rule_checker(stream, f"output {n}") for n, (stream, *_) in enumerate(gets)]
    simulate(unit, *benches, rest, background=[*background, *rules])
    return found


class BusyWatch:
    """Records the cycles of offered and taken writes, and ``busy``."""

    def __init__(self, unit, writes, beats):
        self._unit, self._writes, self._beats = unit, writes, beats
        self._busy, self._offered, self._taken = [], [], []

    async def watch(self, ctx):
        """Run in the background."""
        valid = Cat(write.valid for write in self._writes)
        taken = Cat(write.valid & write.ready for write in self._writes)
        payloads = [Value.cast(write.payload) for write in self._writes]
        tick = ctx.tick().sample(self._unit.busy, valid, taken, *payloads)
        while True:
            _, _, busy, offered, takes, *words = await tick
            self._busy.append(busy)
            self._offered.append(bool(offered))
            came = [self._beats(word) for n, word in enumerate(words) if takes >> n & 1]
            self._taken.append(sum(came))

    def check(self, memories):
        """High while a beat is taken and not answered, and at most a cycle longer."""
        answers = [0] * len(self._busy)
        for memory in memories:
            for cycle in memory.cycles["b"]:
                answers[cycle] += 1
        left, quiet = 0, 2
        for busy, offered, taken, answered in zip(
            self._busy, self._offered, self._taken, answers, strict=True
        ):
            quiet = 0 if left or offered else quiet + 1
            assert busy or not left
            assert not busy or quiet < 2
            left += taken - answered
        assert not left
        assert not self._busy[-1]
