"""The attention core: streams and commands in, streams out; it knows no memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.command import Command
from hw.attention.config import AttentionConfig
from hw.attention.drain import Drain, OutputBeat
from hw.attention.finish import Finish
from hw.attention.keys import KeySide
from hw.attention.row import AttentionRow
from hw.attention.values import ValueSide
from hw.errors import InputError
from hw.lib.place import Placer


class Activity(data.StructLayout):
    """What the key array did in a cycle; at most one bit is set, and none when there was nothing to do.

    Members
    -------
    busy : 1
        It took a key.
    key, value, query, output : 1
        It did not, for want of a key; of values, so that logits could not leave; of queries; or of room for
        results.
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
        Bits of an output beat: a power of two from ``16 * merge_lanes`` to ``16 * head_dim``.

    Members
    -------
    i_command : In(stream of Command)
        One for each query tile.
    i_query : In(stream of D x int8)
        ``rows`` queries for each command.
    i_key, i_value : In(stream of D x int8)
        ``keys`` keys and as many values for each command.
    o : Out(stream of OutputBeat)
        Results of each command: ``rows`` times D int16, row by row, lowest lane in the low bits.
    activity : Out(Activity)

    Behaviour
    ---------
    One key and one value a cycle.  From one query tile to the next there is no gap, whatever the commands
    say, as long as each has at least as many keys as beats of results and as it takes to merge a tile.
    """

    def __init__(self, config: AttentionConfig, placer: Placer, *, beat_width: int = 256) -> None:
        low, high = 16 * config.merge_lanes, 16 * config.head_dim
        if not low <= beat_width <= high or beat_width & (beat_width - 1):
            raise InputError("beat_width", beat_width, f"a power of two from {low} to {high}")
        self._config = config
        self._placer = placer
        self._beat_width = beat_width
        elements = data.ArrayLayout(signed(8), config.head_dim)
        super().__init__(
            {
                "i_command": In(stream.Signature(Command(config))),
                "i_query": In(stream.Signature(elements)),
                "i_key": In(stream.Signature(elements)),
                "i_value": In(stream.Signature(elements)),
                "o": Out(stream.Signature(OutputBeat(beat_width))),
                "activity": Out(Activity()),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Place the rows and the four parts that control them."""
        m = Module()
        config, beat_width = self._config, self._beat_width
        m.submodules.keys = keys = KeySide(config)
        m.submodules.values = values = ValueSide(config)
        m.submodules.finish = finish = Finish(config)
        m.submodules.drain = drain = Drain(config, beat_width=beat_width)
        connect(m, flipped(self.i_command), keys.i_command)
        connect(m, flipped(self.i_query), keys.i_query)
        connect(m, flipped(self.i_key), keys.i_key)
        connect(m, flipped(self.i_value), values.i_value)
        connect(m, keys.tile, values.i_tile)
        connect(m, finish.result, drain.i)
        connect(m, drain.o, flipped(self.o))
        m.d.comb += [
            keys.read.eq(values.place),
            finish.end.eq(values.end),
            values.freed.eq(drain.freed),
            self.activity.busy.eq(keys.issue),
            self.activity.key.eq(keys.starved),
            self.activity.query.eq(keys.unloaded),
            # Full logit buffers are the other side's doing: it waits for a bank of results, or for values.
            self.activity.output.eq(keys.blocked & values.blocked),
            self.activity.value.eq(keys.blocked & ~values.blocked),
        ]

        def make_row() -> AttentionRow:
            return AttentionRow(config, beat_width=beat_width)

        for n in range(config.rows):
            row = self._placer.place(m, f"row_{n}", "attention_row", make_row)
            m.d.comb += [
                row.control.swap.eq(keys.swap),
                row.control.multiplier.eq(keys.multiplier),
                row.control.shift.eq(keys.shift),
                row.control.write.eq(keys.write),
                row.control.read.eq(values.read),
                row.control.exponent.eq(values.exponent),
                row.control.first.eq(values.first),
                row.control.last.eq(values.last),
                row.control.merge.eq(finish.merge),
                row.control.divide.eq(finish.divide),
                row.control.normalize.eq(finish.normalize),
                row.control.drain.eq(drain.read),
                row.load.eq(keys.load[n]),
                row.query.eq(keys.query),
                row.key.eq(keys.key),
                row.value.eq(values.value),
                drain.rows[n].eq(row.o),
            ]
        return m
