"""Core, movers and counters behind one register file."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.core.core import AttentionCore
from hw.attention.kernel.arguments import (
    CAUSES,
    argument_table,
    bytes_counters,
    saturation_counters,
    stream_ports,
)
from hw.attention.movers.movers import AttentionMovers
from hw.attention.movers.ports import port_count
from hw.attention.walk.descriptor import FIELDS, job_fields
from hw.lib.counters import count_cycles, count_since
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer


class AttentionBody(wiring.Component):
    """The body of the attention kernel.

    See `hw.lib.kernel.BodySignature`; the arguments are those of `argument_table`.

    Behaviour
    ---------
    The first job is in the arguments of its fields' names, the others in descriptors.  A launch whose jobs
    have no queries, keys or heads is done at once.  Other arguments out of range make meaningless results;
    the host must reject them.
    """

    def __init__(self, config: AttentionConfig, placer: Placer, *, data_width: int) -> None:
        self._config = config
        self._core = AttentionCore(
            config, placer, beat_width=config.result_ports * config.result_slice(data_width)
        )
        self._movers = AttentionMovers(config, data_width=data_width)
        super().__init__(BodySignature(argument_table(config), data_width=data_width))

    def elaborate(self, platform: Any) -> Module:
        """Connect core, movers and register file, and count."""
        m = Module()
        config = self._config
        m.submodules.core = core = self._core
        m.submodules.movers = movers = self._movers
        connect(m, movers.o_command, core.i_command)
        connect(m, movers.o_row, core.i_row)
        connect(m, movers.o_query, core.i_query)
        connect(m, movers.o_empty, core.i_empty)
        for s in range(config.streams):
            connect(m, movers.o_tile[s], core.i_tile[s])
            connect(m, movers.o_key[s], core.i_key[s])
            connect(m, movers.o_value[s], core.i_value[s])
        if config.decodes:
            m.d.comb += core.decode.eq(movers.o_decode)
            connect(m, movers.o_own_key, core.i_own_key)
            connect(m, movers.o_own_value, core.i_own_value)
        for n in range(port_count(config)):
            connect(m, getattr(movers, f"gmem{n}"), flipped(getattr(self, f"gmem{n}")))
        m.d.comb += [
            movers.i.payload.eq(core.o.payload.data),
            movers.i.valid.eq(core.o.valid),
            core.o.ready.eq(movers.i.ready),
            movers.start.eq(self.start),
            self.done.eq(movers.done),
        ]
        stall = {cause: core.activity[cause] for cause in CAUSES}
        count_cycles(m, self, busy=core.activity.busy, stall=stall)
        m.d.comb += self._arguments(movers)
        for name in bytes_counters(config):
            start = self._start(m, name)
            m.d.sync += self.counters[name].eq(count_since(m, start, movers.moved[name]))
        for name in saturation_counters(config):
            count, more = self.counters[name], getattr(core, name)
            m.d.sync += count.eq(Mux(self._start(m, name), 0, count + more))
        return m

    def _start(self, m: Module, name: str) -> Signal:
        """Return a copy of ``start`` for a counter, a cycle late: a single one had 886 loads."""
        start = Signal(name=f"start_{name}", attrs={"keep": 1})
        m.d.sync += start.eq(self.start)
        return start

    def _arguments(self, movers: AttentionMovers) -> list[Any]:
        """Return the assignments of the arguments to the movers."""
        offsets = dict.fromkeys(("q_offset", "k_offset", "v_offset", "o_offset"), Const(0))
        fields = {name: self.args[name] for name in FIELDS if name not in offsets} | offsets
        assignments = [
            *job_fields(self._config, movers.job, fields),
            movers.jobs.eq(self.args.jobs),
            movers.job_count.eq(self.args.job_count),
        ]
        assignments += [movers.q_base[n].eq(self.args[f"q{n}"]) for n in range(self._config.query_port_count)]
        assignments += [movers.o_base[w].eq(self.args[f"o{w}"]) for w in range(self._config.result_ports)]
        for n, (s, p) in enumerate(stream_ports(self._config)):
            assignments += [
                movers.k_base[s][p].eq(self.args[f"k{n}"]),
                movers.v_base[s][p].eq(self.args[f"v{n}"]),
            ]
        return assignments
