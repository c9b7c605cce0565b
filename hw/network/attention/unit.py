"""The attention unit: feed, core and writer behind one command."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.core.core import AttentionCore
from hw.lib.place import Placer
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.feed import AttentionFeed
from hw.network.attention.layouts import AttentionFields
from hw.network.attention.result_writer import AttentionResultWriter
from hw.network.scratchpad.reader import GranuleReadPort
from hw.network.scratchpad.writer import GranuleWritePort

#: Most commands in the unit, rounded up.
_MOST_COMMANDS = 31


class AttentionUnit(wiring.Component):
    """Executes commands in order, and overlaps them.

    Behaviour
    ---------
    A command is taken while results of earlier ones still leave.  ``done`` is up for a cycle when all results
    of a command are granted in the scratchpad.

    ``busy``, ``waits_read``, ``waits_write``: for counters: a command is in the unit; the core waits for
    queries, keys or values; a result waits for the scratchpad, or the core for room for results.
    """

    def __init__(self, config: AttentionUnitConfig, placer: Placer) -> None:
        self.config = config
        self._placer = placer
        super().__init__(
            {
                "command": In(stream.Signature(AttentionFields(config))),
                "done": Out(1),
                #: Of keys; of queries and values.
                "read": Out(GranuleReadPort(config.shape)).array(2),
                "write": Out(GranuleWritePort(config.shape)),
                "busy": Out(1),
                "waits_read": Out(1),
                "waits_write": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Feed -> core -> writer."""
        m = Module()
        config, placer = self.config, self._placer
        bits = config.beat_granules * config.shape.granule_bits
        feed = placer.place(m, "feed", "network_attention_feed", lambda: AttentionFeed(config))
        m.submodules.core = core = AttentionCore(config.core, placer, beat_width=bits)
        m.submodules.writer = writer = AttentionResultWriter(config)
        connect(m, flipped(self.command), feed.command)
        for own, inner in zip(self.read, feed.read, strict=True):
            connect(m, inner, flipped(own))
        for source, sink in (
            (feed.query_command, core.i_command),
            (feed.row, core.i_row),
            (feed.tile, core.i_tile[0]),
            (core.o, writer.i),
            (feed.place, writer.place),
        ):
            connect(m, source, sink)
        for source, sink in (
            (feed.query, core.i_query),
            (feed.key, core.i_key[0]),
            (feed.value, core.i_value[0]),
        ):
            m.d.comb += [
                Value.cast(sink.payload).eq(source.payload),
                sink.valid.eq(source.valid),
                source.ready.eq(sink.ready),
            ]
        connect(m, writer.write, flipped(self.write))
        # Every pass has a key.
        m.d.comb += [core.i_empty.valid.eq(1), core.i_empty.payload.eq(0), self.done.eq(writer.done)]
        taken = self.command.valid & self.command.ready
        inside = Signal(range(_MOST_COMMANDS + 1))
        activity = core.activity
        m.d.sync += [
            inside.eq(inside + taken - self.done),
            self.waits_read.eq(activity.query | activity.key | activity.value),
            self.waits_write.eq(activity.output | writer.blocked),
        ]
        m.d.comb += self.busy.eq(inside != 0)
        return m
