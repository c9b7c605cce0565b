"""The attention core: streams and commands in, a stream out; it knows no memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.core.command import QueryCommand, TileCommand
from hw.attention.core.drain import Drain, OutputBeat
from hw.attention.core.finish import Finish
from hw.attention.core.key_side import KeySide
from hw.attention.core.query_side import QuerySide
from hw.attention.core.result.cell import ResultControl, ResultRows
from hw.attention.core.row.cell import AttentionRows, RowControl, row_cells
from hw.attention.core.settings import RowSettings
from hw.attention.core.value_side import ValueSide
from hw.errors import InputError
from hw.lib.arithmetic.adder_tree import adder_tree
from hw.lib.place import Placer


class Activity(data.StructLayout):
    """What the key arrays did in a cycle; at most one bit is set, and none when there was nothing to do.

    Members
    -------
    busy : 1
        A stream took a part of a key.
    query, key, value, output : 1
        None did, for want of queries; of a key; of values, so that logits could not leave; or of room for
        results.  The first of these that holds for any stream.
    """

    def __init__(self) -> None:
        super().__init__({"busy": 1, "key": 1, "value": 1, "query": 1, "output": 1})


class AttentionCore(wiring.Component):
    """Attention of query tiles, one after another.

    Parameters
    ----------
    config
        Shape of the engine.
    placer
        How the rows enter the core.
    beat_width
        Bits of an output beat: a power of two, at least those of ``merge_lanes`` results.

    Members
    -------
    i_command, i_row, i_query, i_tile, i_key, i_value
        See `hw.attention.core.command`; the last three are arrays of S streams.
    o : Out(stream of OutputBeat)
        Results of each pass, row by row, lowest lane in the low bits.
    activity : Out(Activity)
    saturated_logits, saturated_results : Out
        How many logits of visible pairs, and results, were cut to their formats in a cycle.

    Behaviour
    ---------
    Each stream takes one part of a key and one of a value a cycle.  From one tile and one pass to the next
    there is no gap, whatever the commands say, as long as each tile takes as many cycles as its merge, and
    each pass as many as its queries have parts and its results beats, and as one division takes.
    """

    def __init__(self, config: AttentionConfig, placer: Placer, *, beat_width: int = 256) -> None:
        low = config.result_bits * config.merge_lanes
        if beat_width < low or beat_width & (beat_width - 1):
            raise InputError("beat_width", beat_width, f"a power of two of at least {low}")
        self._config = config
        self._placer = placer
        self._beat_width = beat_width
        elements = data.ArrayLayout(signed(8), config.lanes)
        super().__init__(
            {
                "i_command": In(stream.Signature(QueryCommand(config))),
                "i_row": In(stream.Signature(RowSettings(config))),
                "i_query": In(stream.Signature(elements)),
                "i_tile": In(stream.Signature(TileCommand(config))).array(config.streams),
                "i_key": In(stream.Signature(elements)).array(config.streams),
                "i_value": In(stream.Signature(elements)).array(config.streams),
                "o": Out(stream.Signature(OutputBeat(beat_width))),
                "activity": Out(Activity()),
                "saturated_logits": Out(range(config.streams * config.rows + 1)),
                "saturated_results": Out(range(config.rows * config.merge_lanes + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Place what is there once, then each stream, then the rows' results."""
        m = Module()
        config = self._config
        m.submodules.queries = queries = QuerySide(config)
        m.submodules.finish = finish = Finish(config)
        m.submodules.drain = drain = Drain(config, beat_width=self._beat_width)
        connect(m, flipped(self.i_command), queries.i_command)
        connect(m, flipped(self.i_row), queries.i_row)
        connect(m, flipped(self.i_query), queries.i_query)
        connect(m, queries.o, finish.i)
        connect(m, finish.result, drain.i)
        connect(m, drain.o, flipped(self.o))
        m.d.comb += finish.drained.eq(drain.freed)

        sides = [self._stream(m, n, queries, finish) for n in range(config.streams)]
        cells = [rows for _, _, rows in sides]
        results = self._results(m, cells, finish, drain)
        for name, counts in (
            ("saturated_logits", [cell.saturated for rows in cells for cell in rows]),
            ("saturated_results", [cell.saturated for cell in results]),
        ):
            total = getattr(self, name)
            m.d.comb += total.eq(adder_tree(m, name, counts, len(total)))
        self._activity(m, queries, [keys for keys, _, _ in sides], [values for _, values, _ in sides])
        return m

    def _stream(
        self, m: Module, n: int, queries: QuerySide, finish: Finish
    ) -> tuple[KeySide, ValueSide, list[Any]]:
        """Place the sides and the rows of a stream."""
        config = self._config
        m.submodules[f"keys_{n}"] = keys = KeySide(config)
        m.submodules[f"values_{n}"] = values = ValueSide(config)
        connect(m, flipped(self.i_tile[n]), keys.i_tile)
        connect(m, flipped(self.i_key[n]), keys.i_key)
        connect(m, flipped(self.i_value[n]), values.i_value)
        connect(m, keys.tile, values.i_tile)
        control = Signal(RowControl(config), name=f"control_{n}")
        m.d.comb += [
            keys.loaded.eq(queries.loaded[n]),
            queries.take[n].eq(keys.take),
            keys.freed.eq(values.freed),
            keys.ended.eq(values.ended),
            finish.closed[n].eq(values.closed),
            values.bank_freed.eq(finish.bank_freed),
            control.place.eq(queries.place),
            control.settings.eq(queries.settings),
            control.pick.eq(keys.pick),
            control.accumulate.eq(keys.accumulate),
            control.first.eq(keys.first),
            control.adopt.eq(keys.adopt),
            control.key.eq(keys.index),
            control.cap.eq(keys.cap),
            control.write.eq(keys.write),
            control.read.eq(values.read),
            control.exponent.eq(values.exponent),
            control.value.eq(values.step),
            control.merge.eq(values.merge),
            control.final.eq(finish.final),
            control.sum_bank.eq(finish.sum_bank),
        ]
        cells = []
        for first, count in row_cells(config):

            def make(count: int = count) -> AttentionRows:
                return AttentionRows(config, rows=count)

            rows = self._placer.place(m, f"rows_{n}_{first}", f"attention_rows_{count}", make)
            m.d.comb += [
                rows.control.eq(control),
                rows.load.eq(queries.load[first : first + count]),
                rows.query.eq(queries.query),
                rows.configure.eq(queries.configure[first : first + count]),
                rows.key.eq(keys.key),
                rows.value.eq(values.value),
            ]
            cells.append(rows)
        return keys, values, cells

    def _results(self, m: Module, streams: list[list[Any]], finish: Finish, drain: Drain) -> list[Any]:
        """Place the results of all rows, and give their cells."""
        config, beat_width = self._config, self._beat_width
        control = Signal(ResultControl(config, beat_width))
        m.d.comb += [
            control.combine.eq(finish.combine),
            control.divide.eq(finish.divide),
            control.normalize.eq(finish.normalize),
            control.drain.eq(drain.read),
        ]
        cells = []
        for cell, (first, count) in enumerate(row_cells(config)):

            def make(count: int = count) -> ResultRows:
                return ResultRows(config, rows=count, beat_width=beat_width)

            results = self._placer.place(m, f"results_{first}", f"attention_results_{count}", make)
            m.d.comb += [
                results.control.eq(control),
                results.drained.eq(drain.row[first : first + count]),
                drain.cells[cell].eq(results.o),
            ]
            for row in range(count):
                m.d.comb += [results.i[n][row].eq(rows[cell].o[row]) for n, rows in enumerate(streams)]
            cells.append(results)
        return cells

    def _activity(self, m: Module, queries: QuerySide, keys: list[KeySide], values: list[ValueSide]) -> None:
        """Find out why no part was taken."""
        starved = Cat(side.starved for side in keys).any()
        unloaded = Cat(side.idle for side in keys).any() & (queries.waiting | queries.loaded.any())
        blocked = Cat(side.blocked for side in keys)
        # Full logit buffers are the other side's doing: it waits for a bank, or for values.
        full = blocked & Cat(side.blocked for side in values)
        busy = Cat(side.issue for side in keys).any()
        m.d.comb += self.activity.busy.eq(busy)
        with m.If(~busy):
            with m.If(unloaded):
                m.d.comb += self.activity.query.eq(1)
            with m.Elif(starved):
                m.d.comb += self.activity.key.eq(1)
            with m.Elif((blocked & ~full).any()):
                m.d.comb += self.activity.value.eq(1)
            with m.Elif(full.any()):
                m.d.comb += self.activity.output.eq(1)
