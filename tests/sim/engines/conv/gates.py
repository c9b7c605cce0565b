"""The engine's dispatcher and core without memory: jobs and tensors in, words of results out."""

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.core.core import ConvCore
from hw.conv.core.layouts import offset_entry
from hw.conv.movers.descriptor import used_bytes
from hw.conv.movers.dispatch import Dispatch
from hw.lib.place import InlinePlacer
from tests.support.gateware.streams import get, put, simulate

_COMMANDS = ("tap", "offset", "block", "sweep", "drain", "bypass_block", "bypass_cut")
_READS = ("read", "bypass_read", "write", "weight_read", "offset_read")
_TOKENS = ("row_token", "block_token", "bypass_token")


class Gates(wiring.Component):
    """Dispatcher and core; movers that accept every command and supply every token."""

    def __init__(self, config, *, beat_bits):
        self.config, self.beat_bits = config, beat_bits
        words, beats = stream.Signature(config.word_bits), stream.Signature(beat_bits)
        super().__init__(
            {
                "jobs": In(stream.Signature(8 * used_bytes(config))),
                **{"i": In(words), "bypass": In(words), "tap_weights": In(beats), "tile_weights": In(beats)},
                "offsets": In(stream.Signature(offset_entry(config))),
                "o": Out(words),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.dispatch = dispatch = Dispatch(self.config)
        m.submodules.core = core = ConvCore(self.config, InlinePlacer(), beat_bits=self.beat_bits)
        connect(m, flipped(self.jobs), dispatch.i)
        for name in _COMMANDS:
            connect(m, getattr(dispatch, name), getattr(core, name))
        for name in ("source_turns", "sink_turns"):
            for n in range(3):
                connect(m, getattr(dispatch, name)[n], getattr(core, name)[n])
        for name in ("i", "bypass", "tap_weights", "tile_weights", "offsets"):
            connect(m, flipped(getattr(self, name)), getattr(core, name))
        connect(m, core.o, flipped(self.o))
        m.d.comb += [getattr(dispatch, name).ready.eq(1) for name in _READS]
        m.d.comb += [getattr(core, name).ready.eq(1) for name in _TOKENS]
        return m


def whole(values):
    """Turn rows of bytes into integers."""
    return [int.from_bytes(row.tobytes(), "little") for row in values]


def run(config, beat_bits, feeds, count):
    """Return the words that leave, int8 ``[count, L]``; ``feeds`` has the items of every input."""
    dut = Gates(config, beat_bits=beat_bits)
    received = []

    def sender(name):
        async def send(ctx):
            await put(ctx, getattr(dut, name), feeds[name])

        return send

    async def receive(ctx):
        received.extend(await get(ctx, dut.o, count, stall=0.1))

    simulate(dut, *(sender(name) for name in feeds if feeds[name]), receive, limit=60_000)
    raw = b"".join(word.to_bytes(config.lanes, "little") for word in received)
    return np.frombuffer(raw, np.int8).reshape(count, config.lanes)
