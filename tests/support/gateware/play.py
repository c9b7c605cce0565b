"""Playing inputs to a unit without handshakes, and sampling its outputs after a fixed latency."""

from tests.support.gateware.streams import plain, set_all, simulate


def play(unit, inputs, output, latency, *, before=()):
    """Drive a unit cycle by cycle.

    Parameters
    ----------
    unit
        The unit.
    inputs
        For each cycle a list of (signal, value).
    output
        A signal, or a list of them, sampled for each cycle of ``inputs``, ``latency`` cycles later.
    before
        Cycles of inputs that come first and are not sampled.
    """
    results = []
    skipped = len(before)
    cycles = [*before, *inputs]

    async def bench(ctx):
        for n in range(len(cycles) + latency):
            if n < len(cycles):
                set_all(ctx, cycles[n])
            if n >= latency + skipped:
                if isinstance(output, list):
                    results.append([plain(ctx.get(signal)) for signal in output])
                else:
                    results.append(plain(ctx.get(output)))
            await ctx.tick()

    simulate(unit, bench)
    return results
