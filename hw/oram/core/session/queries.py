"""From sealed commands to queries of the position map."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.oram.config import OramConfig
from hw.oram.core.crypto.aes_lane import KEYS_LAYOUT
from hw.oram.core.crypto.config import power_layout
from hw.oram.core.crypto.front import Front
from hw.oram.core.layouts import BEAT_BITS, command_layout, query_layout
from hw.oram.core.session.command_opener import CommandOpener
from hw.oram.core.session.record import record_shape
from hw.oram.core.stage.layouts import value_write_layout


class Queries(wiring.Component):
    """Opens commands, permutes their keys, and draws."""

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._opener = CommandOpener(config, placer)
        self._front = Front(
            key_bits=config.key_bits, draws=config.draws, interval=config.interval, placer=placer
        )
        super().__init__(
            {
                **{f"{name}_keys": In(KEYS_LAYOUT) for name in ("session", "permutation", "draw")},
                "session_power": In(power_layout(record_shape(config))),
                #: ``enable``, ``i``, ``value``: as in `CommandOpener`.
                "enable": In(1),
                "i": In(stream.Signature(BEAT_BITS)),
                "value": Out(stream.Signature(value_write_layout(config), always_ready=True)),
                #: There is room for every accepted operation.
                "query": Out(stream.Signature(query_layout(config))),
                "rejected": Out(1),  #: Pulse: a command's tag was wrong.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Commands wait for the front's next cycle, and pass beside it."""
        m = Module()
        config = self._config
        m.submodules.opener, m.submodules.front = opener, front = self._opener, self._front
        connect(m, flipped(self.i), opener.i)
        connect(m, opener.value, flipped(self.value))
        under_way = -(-front.latency(config.interval) // config.interval) + 1
        m.submodules.commands = commands = Fifo(command_layout(config), depth=2)
        m.submodules.passing = passing = Fifo(command_layout(config), depth=under_way)
        m.submodules.queries = queries = Fifo(query_layout(config), depth=config.accepted, ram_style="block")
        connect(m, queries.o, flipped(self.query))
        taken = commands.o.valid & front.i.ready
        m.d.comb += [
            opener.round_keys.eq(self.session_keys),
            front.permutation_keys.eq(self.permutation_keys),
            front.draw_keys.eq(self.draw_keys),
            opener.power.eq(self.session_power),
            opener.enable.eq(self.enable),
            self.rejected.eq(opener.command.valid & opener.command.payload.rejected),
            commands.i.valid.eq(opener.command.valid),
            commands.i.payload.eq(opener.command.payload),
            commands.o.ready.eq(front.i.ready),
            front.i.valid.eq(commands.o.valid),
            front.i.payload.eq(commands.o.payload.key),
            passing.i.valid.eq(taken),
            passing.i.payload.eq(commands.o.payload),
            passing.o.ready.eq(front.o.valid),
            queries.i.valid.eq(front.o.valid),
            queries.i.payload.command.eq(passing.o.payload),
            queries.i.payload.permuted.eq(front.o.payload.permuted),
        ]
        for n in range(config.draws):
            m.d.comb += queries.i.payload.draw[n].eq(front.o.payload.draw[n])
        return m
