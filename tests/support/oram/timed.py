"""Streams driven in given cycles, and the cycles in which others have a payload."""

from amaranth.hdl import Cat, Value

from tests.support.gateware.streams import put, set_all, simulate
from tests.support.oram.blocks import bits
from tests.support.oram.pages import powers


def keyed(power, shape, key):
    """Yield, cycle by cycle, the (signal, value) that writes the powers of a hash key."""
    writes = [{"en": 1, "slot": slot, "value": bits(value)} for slot, value in powers(shape, key)]
    return [[(power, write)] for write in (*writes, {"en": 0, "slot": 0, "value": 0})]


def run_timed(unit, sent, watched, *, before=(), requests=(), constants=(), ready=(), until):
    """Run ``unit`` from reset; return the bits of each transfer of ``watched``, by cycle.

    Parameters
    ----------
    sent
        (stream, {cycle: bits}): what goes in, and is taken at once.
    watched
        Streams, or signals of which the nonzero values count.
    before
        Lists of (signal, value), a cycle each: they are given before cycle 0.
    requests
        (stream, payloads): put one after the other as early as they are taken.
    constants
        (signal, value) that last.
    ready
        (stream, cycles): those of ``watched`` that are not always ready, and when they are.
    until
        Cycle in which it ends.
    """
    found = [{} for _ in watched]
    pins = Cat(pin for stream, _ in sent for pin in (stream.valid, Value.cast(stream.payload)))
    widths = [1 + len(Value.cast(stream.payload)) for stream, _ in sent]
    taken = [Value.cast(stream.ready) for stream, _ in sent]
    seen = [
        Cat(stream.valid & stream.ready, Value.cast(stream.payload))
        if hasattr(stream, "valid")
        else Cat(stream.any(), stream)
        for stream in watched
    ]
    ready = [(stream, frozenset(cycles)) for stream, cycles in ready]

    async def drive(ctx):
        set_all(ctx, constants)
        for values in before:
            set_all(ctx, values)
            await ctx.tick()
        tick = ctx.tick().sample(*taken, *seen)
        for cycle in range(until):
            together = offset = 0
            for (_, payloads), width in zip(sent, widths, strict=True):
                if cycle in payloads:
                    together |= (payloads[cycle] << 1 | 1) << offset
                offset += width
            ctx.set(pins, together)
            for stream, cycles in ready:
                ctx.set(stream.ready, cycle in cycles)
            _, _, *sampled = await tick
            for (_, payloads), takes in zip(sent, sampled[: len(sent)], strict=True):
                assert takes or cycle not in payloads
            for payloads, word in zip(found, sampled[len(sent) :], strict=True):
                if word & 1:
                    payloads[cycle] = word >> 1

    async def ask(ctx):
        for _ in before:
            await ctx.tick()
        for stream, payloads in requests:
            await put(ctx, stream, payloads)

    simulate(unit, drive, background=[ask])
    return found
