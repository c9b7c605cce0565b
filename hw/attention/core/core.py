"""The attention core: streams and commands in, a stream out; it knows no memory."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.core.command import PartSource, QueryCommand, TileCommand
from hw.attention.core.drain import Drain, OutputBeat
from hw.attention.core.finish import Finish
from hw.attention.core.key_side import KeySide
from hw.attention.core.query_side import QuerySide
from hw.attention.core.result.cell import ResultControl, ResultRows
from hw.attention.core.row.cell import AttentionRows, RowControl, row_cells
from hw.attention.core.settings import RowSettings
from hw.attention.core.value_side import ValueSide
from hw.errors import check_power_of_two
from hw.lib.arithmetic.adder_tree import adder_tree
from hw.lib.loads import LOADS, copies
from hw.lib.place import Placer


class Activity(data.StructLayout):
    """The state of the key arrays in a cycle; at most one bit is set, none without work."""

    def __init__(self) -> None:
        super().__init__(
            {
                "busy": 1,  #: A stream took a part of a key.
                #: ``query``, ``key``, ``value``, ``output``: none did, for lack of queries; of a key; of
                #: values, so that logits stayed; or of room for results.  The first cause that holds for any
                #: stream.
                "key": 1,
                "value": 1,
                "query": 1,
                "output": 1,
            }
        )


class AttentionCore(wiring.Component):
    """Attention of query tiles, one after another.

    ``beat_width``: bits of an output beat: a power of two, at least those of ``merge_lanes`` results.

    Behaviour
    ---------
    Each stream takes one part of a key and one of a value a cycle.  No cycle is lost between tiles if each
    tile takes as many cycles as its merge. None is lost between passes if each takes as many cycles as its
    queries have parts, its results have beats, and one division takes.

    In passes that decode the cells of all streams follow the control of stream 0, which alone has tiles. Each
    cell takes parts of its own; all have the queries of rows 0 and 1.  When ``decode`` changes, the sides of
    a stream restart their counts of passes.
    """

    def __init__(self, config: AttentionConfig, placer: Placer, *, beat_width: int = 256) -> None:
        low = config.result_bits * config.merge_lanes
        check_power_of_two("beat_width", beat_width, low)
        self._config = config
        self._placer = placer
        self._beat_width = beat_width
        elements = data.ArrayLayout(signed(8), config.lanes)
        members: dict[str, Any] = {
            # The order of all inputs is that of `hw.attention.core.command`.
            "i_command": In(stream.Signature(QueryCommand(config))),  #: Passes in order, one item each.
            "i_row": In(stream.Signature(RowSettings(config))),  #: One for each row of a pass, row 0 first.
            #: Parts of queries, D int8 each: ``last_key_part + 1`` for each row of a pass, row 0 first; the
            #: last part of a row is zero padded.
            "i_query": In(stream.Signature(elements)),
            #: One for each pass: 1 if no row sees a key; then no tile, key or value follows for it.
            "i_empty": In(stream.Signature(1)),
            #: Tiles of the passes that are not empty, at least one of each pass in each stream.
            "i_tile": In(stream.Signature(TileCommand(config))).array(config.streams),
            #: Parts of keys, D int8 each: for each tile ``last_index + 1`` keys of ``last_key_part + 1``
            #: parts.
            "i_key": In(stream.Signature(elements)).array(config.streams),
            #: Parts of values, D int8 each: for each tile ``last_index + 1`` values of ``last_value_part +
            #: 1`` parts.
            "i_value": In(stream.Signature(elements)).array(config.streams),
            #: Results of each pass, row by row, lowest element in the low bits; each row begins in a new
            #: beat.  Bits after a row's last element are undefined.
            "o": Out(stream.Signature(OutputBeat(beat_width))),
            #: State of the key arrays in this cycle, for counters.
            "activity": Out(Activity()),
            #: ``saturated_logits``, ``saturated_results``: logits of visible pairs, and results, clamped in a
            #: cycle.
            "saturated_logits": Out(range(config.streams * config.rows + 1)),
            "saturated_results": Out(range(config.rows * config.merge_lanes + 1)),
        }
        if config.decodes:
            own = PartSource(config)
            members |= {
                #: Passes decode.  It changes while the core is idle, and no input is valid in the next two
                #: cycles.
                "decode": In(1),
                #: ``i_own_key``, ``i_own_value``: parts of passes that decode; valid only while ``decode`` is
                #: high.  Streams of keys and values are valid only while it is low.
                "i_own_key": In(own),
                "i_own_value": In(own),
            }
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Place the shared sides, then each stream, then the results of the rows."""
        m = Module()
        config = self._config
        m.submodules.queries = queries = QuerySide(config)
        m.submodules.finish = finish = Finish(config)
        m.submodules.drain = drain = Drain(config, beat_width=self._beat_width)
        connect(m, flipped(self.i_command), queries.i_command)
        connect(m, flipped(self.i_row), queries.i_row)
        connect(m, flipped(self.i_query), queries.i_query)
        connect(m, flipped(self.i_empty), queries.i_empty)
        connect(m, queries.o, finish.i)
        connect(m, queries.results, drain.passes)
        connect(m, finish.result, drain.i)
        connect(m, drain.o, flipped(self.o))
        m.d.comb += finish.drained.eq(drain.freed)
        decode = Signal(attrs={"keep": 1} if config.decodes else {})
        restart = Signal()
        if config.decodes:
            m.d.sync += decode.eq(self.decode)
            m.d.comb += restart.eq(self.decode ^ decode)
            for side in (queries, finish):
                m.d.comb += [side.decode.eq(decode), side.restart.eq(restart)]

        lead = Signal(RowControl(config))
        sides = [self._stream(m, n, queries, finish, lead, decode, restart) for n in range(config.streams)]
        cells = [rows for _, _, rows in sides]
        results = self._results(m, cells, finish, drain, decode)
        for name, counts in (
            ("saturated_logits", [cell.saturated for rows in cells for cell in rows]),
            ("saturated_results", [cell.saturated for cell in results]),
        ):
            total = getattr(self, name)
            m.d.comb += total.eq(adder_tree(m, name, counts, len(total)))
        self._activity(m, queries, [keys for keys, _, _ in sides], [values for _, values, _ in sides], decode)
        return m

    def _stream(
        self,
        m: Module,
        n: int,
        queries: QuerySide,
        finish: Finish,
        lead: Any,
        decode: Signal,
        restart: Signal,
    ) -> tuple[KeySide, ValueSide, list[Any]]:
        """Place the sides and the rows of a stream; ``lead`` is the control of passes that decode."""
        config = self._config
        leads = config.decodes and n == 0
        # `decode`, in a register for every `LOADS` bits of the control that it selects, and one for each
        # cell.
        words = 0 if leads else -(-RowControl(config).size // LOADS)
        decodes = copies(Signal(name=f"decode_{n}"), words + len(row_cells(config)))
        if config.decodes:
            m.d.sync += [register.eq(self.decode) for register in decodes]
        m.submodules[f"keys_{n}"] = keys = KeySide(config, leads=leads)
        m.submodules[f"values_{n}"] = values = ValueSide(config, leads=leads)
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
        if config.decodes:
            m.d.comb += [keys.restart.eq(restart), values.restart.eq(restart)]
        if leads:
            m.d.comb += lead.eq(control)
            for side, source in ((keys, self.i_own_key), (values, self.i_own_value)):
                m.d.comb += [
                    side.decode.eq(decode),
                    side.own_valid.eq(source.valid),
                    source.take.eq(side.own_take),
                    source.last.eq(side.own_last),
                    source.keep.eq(side.own_keep),
                ]
        elif config.decodes:
            own, control = control, Signal(RowControl(config), name=f"chosen_control_{n}")
            m.d.comb += values.bank_freed.eq(finish.bank_freed & ~decode)
            chosen, led, alone = (Value.cast(each) for each in (control, lead, own))
            for word in range(words):
                m.d.comb += chosen.word_select(word, LOADS).eq(
                    Mux(decodes[word], led.word_select(word, LOADS), alone.word_select(word, LOADS))
                )
        cells = []
        for (first, count), decode_here in zip(row_cells(config), decodes[words:], strict=True):

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
            if config.decodes:
                # Rows without a port get no queries.
                own = first // 2 < config.ports
                m.d.comb += rows.decode.eq(decode_here)
                with m.If(decode_here):
                    m.d.comb += [
                        rows.load.eq(queries.load[:count] if own else 0),
                        rows.configure.eq(queries.configure[:count] if own else 0),
                    ]
                if own:
                    self._own(m, rows, n + config.streams * (first // 2), decode_here)
            cells.append(rows)
        return keys, values, cells

    def _own(self, m: Module, rows: Any, place: int, decode: Signal) -> None:
        """Connect rows to their parts of a `PartSource`."""
        m.d.comb += [
            rows.own_key.eq(self.i_own_key.parts[place]),
            rows.own_value.eq(self.i_own_value.parts[place]),
        ]
        with m.If(decode):
            m.d.comb += rows.control.key[: self._config.decode_stream_bits].eq(place)

    def _results(
        self, m: Module, streams: list[list[Any]], finish: Finish, drain: Drain, decode: Signal
    ) -> list[Any]:
        """Place the results of all rows, and return their cells."""
        config, beat_width = self._config, self._beat_width
        control = Signal(ResultControl(config, beat_width))
        m.d.comb += [
            control.combine.eq(finish.combine),
            control.divide.eq(finish.divide),
            control.normalize.eq(finish.normalize),
            control.drain.eq(drain.read),
        ]
        if config.decodes:
            m.d.comb += [control.decode.eq(decode), control.gather.eq(finish.gather)]
        cells = []
        for cell, (first, count) in enumerate(row_cells(config)):
            gathers = config.decodes and cell == 0

            def make(count: int = count, gathers: bool = gathers) -> ResultRows:
                return ResultRows(config, rows=count, beat_width=beat_width, gathers=gathers)

            kind = f"attention_results_{count}" + "_gather" * gathers
            results = self._placer.place(m, f"results_{first}", kind, make)
            m.d.comb += [
                results.control.eq(control),
                results.drained.eq(drain.row[first : first + count]),
                drain.cells[cell].eq(results.o),
            ]
            for row in range(count):
                m.d.comb += [results.i[n][row].eq(rows[cell].o[row]) for n, rows in enumerate(streams)]
                if gathers:
                    m.d.comb += [
                        results.others[other - 1][n][row].eq(rows[other].o[row])
                        for n, rows in enumerate(streams)
                        for other in range(1, config.ports)
                    ]
            if config.decodes and not gathers:
                # The sums of the other rows are added to those of the first rows, which alone have results.
                m.d.comb += results.control.normalize.valid.eq(control.normalize.valid & ~decode)
            cells.append(results)
        return cells

    def _activity(
        self,
        m: Module,
        queries: QuerySide,
        keys: list[KeySide],
        values: list[ValueSide],
        decode: Signal,
    ) -> None:
        """Derive the state of a cycle; find the cause if no part was taken."""
        starved = Cat(side.starved for side in keys).any()
        idle = Cat(side.idle for side in keys)
        if self._config.decodes:
            idle &= ~Cat(0, decode.replicate(len(keys) - 1))
        unloaded = idle.any() & (queries.waiting | queries.loaded.any())
        blocked = Cat(side.blocked for side in keys)
        # Logit buffers are full because the value side waits for a bank, or for values.
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
