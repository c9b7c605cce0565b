"""A design of one's own around the attention core: one head, keys and values in RAM, queries as a stream.

``one_head.v`` is the same design in Verilog.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.cores import AttentionConfig, AttentionCore, InlinePlacer

#: Most queries and keys of a head.
MOST = 64


class OneHead(wiring.Component):
    """Attention of one head: every query sees every key.

    ``config``: of a core with one stream, heads of up to ``lanes`` elements, results int16. ``multiplier``,
    ``shift``: raw score to log2 units, as ``(S * multiplier) >> shift`` in units of 2^-12. ``fraction``: bits
    behind the point of results.

    Behaviour
    ---------
    A job takes ``keys`` rows of ``i_k`` and of ``i_v`` into RAM, then ``queries`` rows of ``i_q``.  A tile of
    R queries is a pass: the core sees all keys and values once for each.
    """

    def __init__(self, config: AttentionConfig, *, multiplier: int, shift: int, fraction: int) -> None:
        self._config = config
        self._numbers = {"multiplier": multiplier, "shift": shift}
        self._fraction = fraction
        row = stream.Signature(8 * config.lanes)
        size = data.StructLayout({"queries": range(MOST + 1), "keys": range(MOST + 1)})
        super().__init__(
            {
                "i_size": In(stream.Signature(size)),  #: A job: 1 ... `MOST` queries and keys.
                "i_k": In(row),
                "i_v": In(row),
                "i_q": In(row),
                "o": Out(stream.Signature(16 * config.lanes)),  #: A row of results for each query.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Load, then feed each input of the core by a counter of its own."""
        m = Module()
        config = self._config
        m.submodules.core = core = AttentionCore(config, InlinePlacer(), beat_width=16 * config.lanes)
        job = Signal(self.i_size.payload.shape())
        loaded = [Signal(range(MOST + 1), name=f"loaded_{name}") for name in "kv"]
        run = Signal()
        begin = self.i_size.valid & self.i_size.ready
        left = Signal(range(MOST + 1))  # results of the job
        m.d.comb += [
            self.i_size.ready.eq(left == 0),
            run.eq((left != 0) & (loaded[0] == job.keys) & (loaded[1] == job.keys)),
        ]
        with m.If(begin):
            m.d.sync += [job.eq(self.i_size.payload), left.eq(self.i_size.payload.queries)]
            m.d.sync += [count.eq(0) for count in loaded]

        # Keys and values: into RAM once, out of it for every pass.
        for name, source, target, count in (
            ("k", self.i_k, core.i_key[0], loaded[0]),
            ("v", self.i_v, core.i_value[0], loaded[1]),
        ):
            memory = Memory(shape=8 * config.lanes, depth=MOST, init=[], attrs={"ram_style": "distributed"})
            m.submodules[f"memory_{name}"] = memory
            write = memory.write_port()
            read = memory.read_port(domain="comb")
            key, _ = self._walk(m, name, begin, run, target, job, step=1)
            m.d.comb += [
                source.ready.eq((left != 0) & (count != job.keys)),
                write.en.eq(source.valid & source.ready),
                write.addr.eq(count),
                write.data.eq(source.payload),
                read.addr.eq(key),
                target.payload.eq(read.data),
            ]
            with m.If(write.en):
                m.d.sync += count.eq(count + 1)

        self._commands(m, core, begin, run, job)

        # A queue of queries, and of results, as they are.
        waiting = Signal(range(MOST + 1))
        taken = core.i_query.valid & core.i_query.ready
        m.d.comb += [
            core.i_query.payload.eq(self.i_q.payload),
            core.i_query.valid.eq(self.i_q.valid & run & (waiting != 0)),
            self.i_q.ready.eq(core.i_query.ready & run & (waiting != 0)),
            self.o.payload.eq(core.o.payload.data),
            self.o.valid.eq(core.o.valid),
            core.o.ready.eq(self.o.ready),
        ]
        with m.If(begin):
            m.d.sync += waiting.eq(self.i_size.payload.queries)
        with m.Elif(taken):
            m.d.sync += waiting.eq(waiting - 1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += left.eq(left - 1)
        return m

    def _commands(self, m: Module, core: AttentionCore, begin: Any, run: Any, job: Any) -> None:
        """Feed passes, the settings of rows, and tiles."""
        config, rows, size = self._config, self._config.rows, self._config.tile_keys
        _, rest = self._walk(m, "command", begin, run, core.i_command, job, step=rows, tiles=False)
        m.d.comb += [
            core.i_command.payload.rows.eq(Mux(rest < rows, rest, rows)),
            core.i_command.payload.value_units.eq(config.lanes // 16),
            core.i_command.payload.scale.fraction.eq(self._fraction),
        ]
        self._walk(m, "empty", begin, run, core.i_empty, job, step=rows, tiles=False)  # its payload is 0
        self._walk(m, "row", begin, run, core.i_row, job, step=1, tiles=False)
        m.d.comb += [core.i_row.payload[name].eq(value) for name, value in self._numbers.items()]
        m.d.comb += core.i_row.payload.end.eq(job.keys)  # `first` is 0: all keys are visible
        key, rest = self._walk(m, "tile", begin, run, core.i_tile[0], job, step=size)
        m.d.comb += [
            core.i_tile[0].payload.first.eq(key),
            core.i_tile[0].payload.last_index.eq(Mux(rest < size, rest, size) - 1),
            core.i_tile[0].payload.opens.eq(key == 0),
            core.i_tile[0].payload.closes.eq(rest <= size),
        ]

    def _walk(
        self,
        m: Module,
        name: str,
        begin: Any,
        run: Any,
        target: Any,
        job: Any,
        *,
        step: int,
        tiles: bool = True,
    ) -> tuple[Signal, Signal]:
        """Offer an item for every ``step`` keys of each pass, or without ``tiles`` for as many queries.

        Returns the key, and how many of those counted are left, this one among them.
        """
        query, key = (Signal(range(2 * MOST), name=f"{name}_{kind}") for kind in ("query", "key"))
        rest = Signal(range(MOST + 1), name=f"{name}_rest")
        done = Signal(name=f"{name}_done", init=1)
        m.d.comb += [rest.eq(job.keys - key if tiles else job.queries - query), target.valid.eq(run & ~done)]
        with m.If(begin):
            m.d.sync += [query.eq(0), key.eq(0), done.eq(0)]
        with m.Elif(target.valid & target.ready):
            ends = rest <= step
            if tiles:
                with m.If(ends):
                    passed = query + self._config.rows
                    m.d.sync += [key.eq(0), query.eq(passed), done.eq(passed >= job.queries)]
                with m.Else():
                    m.d.sync += key.eq(key + step)
            else:
                m.d.sync += [query.eq(query + step), done.eq(ends)]
        return key, rest
