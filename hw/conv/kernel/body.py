"""Core, movers and counters behind one register file."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.core import ConvCore
from hw.conv.kernel.arguments import CAUSES, argument_table, bytes_counters
from hw.conv.movers.movers import COMMANDS, ConvMovers, side_port
from hw.lib.counters import count_cycles, count_since
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer


class ConvBody(wiring.Component):
    """The body of the convolution kernel.

    See `hw.lib.kernel.BodySignature`; the arguments are those of `argument_table`.

    Behaviour
    ---------
    A launch without jobs is done at once.  A descriptor with a field out of range has undefined results, or
    none; the host must refuse it.
    """

    def __init__(self, config: ConvConfig, placer: Placer, *, data_width: int) -> None:
        self._config = config
        self._core = ConvCore(config, placer, beat_bits=data_width)
        self._movers = ConvMovers(config, data_width=data_width)
        super().__init__(BodySignature(argument_table(config), data_width=data_width))

    def elaborate(self, platform: Any) -> Module:
        """Connect core, movers and counters."""
        m = Module()
        config = self._config
        m.submodules.core = core = self._core
        m.submodules.movers = movers = self._movers
        for name in (*COMMANDS, "offsets", "bypass", "tap_weights", "tile_weights"):
            connect(m, getattr(movers, name), getattr(core, name))
        for name in ("row_token", "block_token", "bypass_token"):
            connect(m, getattr(core, name), getattr(movers, name))
        if config.gather_words:
            connect(m, core.requests, movers.requests)
            connect(m, movers.gathered, core.gathered)
        for n in range(3):
            connect(m, movers.source_turns[n], core.source_turns[n])
            connect(m, movers.sink_turns[n], core.sink_turns[n])
        connect(m, movers.o, core.i)
        connect(m, core.o, movers.i)
        for n in range(side_port(config) + 1):
            connect(m, getattr(movers, f"gmem{n}"), flipped(getattr(self, f"gmem{n}")))
        m.d.comb += [
            movers.start.eq(self.start),
            movers.jobs.eq(self.args.jobs),
            movers.job_count.eq(self.args.job_count),
            movers.log.eq(self.args.log),
            movers.bases.weights.eq(self.args.weights),
            movers.bases.offsets.eq(self.args.offsets),
            *(movers.bases.maps[p].eq(self.args[f"maps{p}"]) for p in range(config.ports)),
            self.done.eq(movers.done),
        ]
        stall = {cause: core.activity[cause] for cause in CAUSES}
        count_cycles(m, self, busy=core.activity.busy, stall=stall)
        for name in bytes_counters(config):
            m.d.sync += self.counters[name].eq(count_since(m, self.start, movers.moved[name]))
        return m
