"""Core, movers and counters behind one register file."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.core import AttentionCore
from hw.attention.kernel.arguments import CAUSES, argument_table, bytes_counters
from hw.attention.movers import AttentionMovers, Moved, port_count
from hw.lib.counters import Counters, counter_names
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer


class AttentionBody(wiring.Component):
    """The body of the attention kernel.

    Parameters
    ----------
    config
        Shape of the engine.
    placer
        How the rows enter the core.
    data_width
        Bits of a beat of every memory port.

    Members
    -------
    See `hw.lib.kernel.BodySignature`; the arguments are those of `argument_table`.

    Behaviour
    ---------
    A launch without queries, keys or heads is done at once. Other arguments outside their ranges give
    meaningless results; the host is to refuse them.
    """

    def __init__(self, config: AttentionConfig, placer: Placer, *, data_width: int) -> None:
        self._config = config
        self._core = AttentionCore(config, placer, beat_width=data_width)
        self._movers = AttentionMovers(config, data_width=data_width)
        super().__init__(BodySignature(argument_table(config), data_width=data_width))

    def elaborate(self, platform: Any) -> Module:
        """Join the three, and count."""
        m = Module()
        m.submodules.core = core = self._core
        m.submodules.movers = movers = self._movers
        m.submodules.counters = counters = Counters(CAUSES)
        connect(m, movers.o_command, core.i_command)
        connect(m, movers.o_query, core.i_query)
        connect(m, movers.o_key, core.i_key)
        connect(m, movers.o_value, core.i_value)
        connect(m, core.o, movers.i)
        for n in range(port_count(self._config)):
            connect(m, getattr(movers, f"gmem{n}"), flipped(getattr(self, f"gmem{n}")))
        m.d.comb += [
            movers.start.eq(self.start),
            self.done.eq(movers.done),
            counters.start.eq(self.start),
            counters.done.eq(self.done),
            counters.busy.eq(core.activity.busy),
            *(counters.stall[cause].eq(core.activity[cause]) for cause in CAUSES),
            *(self.counters[name].eq(counters.counters[name]) for name in counter_names(CAUSES)),
            *self._job(movers.job),
        ]
        # The DMAs count on; what they had when the launch began is taken off.
        before = Signal(Moved(self._config))
        with m.If(self.start):
            m.d.sync += before.eq(movers.moved)
        for name in bytes_counters(self._config):
            m.d.sync += self.counters[name].eq((movers.moved[name] - before[name])[:48])
        return m

    def _job(self, job: Any) -> list[Any]:
        """Give the assignments of the arguments to the movers' job."""
        scalars = (
            "queries",
            "keys",
            "heads",
            "kv_group",
            "score_multiplier",
            "score_shift",
            "output_fraction",
        )
        assignments = [job[name].eq(self.args[name]) for name in (*scalars, "q", "o")]
        for stream in ("k", "v"):
            assignments += [
                job[stream][p].eq(self.args[f"{stream}{p}"]) for p in range(self._config.ports_per_stream)
            ]
        return assignments
