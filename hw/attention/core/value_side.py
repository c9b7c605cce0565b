"""Value side of one stream: broadcasts parts of values to the rows once the logits of their tile are
complete.
"""

from functools import cache
from typing import Any

from amaranth.hdl import Array, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import RESULT_BANKS, AttentionConfig
from hw.attention.core.command import BufferedTile
from hw.attention.core.row.maximum import LOGIT_TILES, LogitRead
from hw.attention.core.row.merge import MergeStep
from hw.attention.core.row.value import ValueStep
from hw.attention.core.timing import CoreTiming
from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.steps import count_steps

#: Banks of final sums, where streams wait for each other.
FINAL_BANKS = 2


def banks_behind(config: AttentionConfig) -> int:
    """Return the most passes that have ended here and not left their bank, for which `ValueSide` waits."""
    return RESULT_BANKS if config.streams == 1 else FINAL_BANKS


@cache
def spacing(config: AttentionConfig, *, parts: int, closes: bool) -> int:
    """Return the fewest cycles between the merges of two tiles: the steps of the first, and its division.

    With several streams `hw.attention.core.finish.Finish` spaces the divisions.
    """
    merge = parts * config.part_steps
    return max(merge, CoreTiming(config).interval) if closes and config.streams == 1 else merge


class TileEnd(data.StructLayout):
    """A tile whose last logit was read: ``tile``, and the ``bank`` of its results if it ``closes``."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"valid": 1, "tile": BufferedTile(config), "bank": 1})


class ValueSide(wiring.Component):
    """Issues parts of values.

    ``leads``: as in `hw.attention.core.key_side.KeySide`.

    Behaviour
    ---------
    One part a cycle; a logit is read for each part of its value.  The merge of a tile waits until the merge
    before is done and the divider is free.  Meanwhile the last key of the next tile must wait, as there is
    room for the finished sums of two tiles.  Later stages take fixed times and never stall, so the last key
    of a pass waits for a bank for its results.

    Why
    ---
    The pipeline stalls in one place, instead of a handshake at every stage of every row.
    """

    def __init__(self, config: AttentionConfig, *, leads: bool = False) -> None:
        self._config = config
        self._leads = leads
        elements = data.ArrayLayout(signed(8), config.lanes)
        members = {
            #: Complete tiles; always ready.
            "i_tile": In(stream.Signature(BufferedTile(config), always_ready=True)),
            "i_value": In(stream.Signature(elements)),  #: See `hw.attention.core.command`.
            #: ``read``, ``exponent``, ``value``, ``step``, ``merge``: to the rows, each at its stage
            #: (`CoreTiming`); ``value`` is the part, ``step`` the ``value`` of
            #: `hw.attention.core.row.cell.RowControl`.
            "read": Out(LogitRead(config)),
            "exponent": Out(1),
            "value": Out(elements),
            "step": Out(ValueStep(config)),
            "merge": Out(MergeStep(config)),
            #: ``freed``, ``ended``: in this cycle a logit is read for the last time; it is the last of its
            #: tile.
            "freed": Out(1),
            "ended": Out(1),
            "closed": Out(1),  #: The tile that closes a pass has ended, and its merge begins.
            #: A pass has left its bank: of results with one stream, else of final sums (`Finals`).
            "bank_freed": In(1),
            #: ``blocked``, ``starved``: in this cycle the last key of a tile waits as all banks are full; or
            #: no value has arrived.
            "blocked": Out(1),
            "starved": Out(1),
        }
        if config.decodes:
            members["restart"] = In(1)  #: See `hw.attention.core.core.AttentionCore`.
        if leads:
            members |= {
                #: Passes decode; ``own_*``: parts of values, one for each cell, of a `PartSource`; they reach
                #: the cells as late as `value` would.
                "decode": In(1),
                "own_valid": In(1),
            }
            members |= {name: Out(1) for name in ("own_take", "own_last", "own_keep")}
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, timing = self._config, CoreTiming(self._config)
        m.submodules.tiles = tiles = Fifo(BufferedTile(config), depth=LOGIT_TILES)
        m.d.comb += [tiles.i.payload.eq(self.i_tile.payload), tiles.i.valid.eq(self.i_tile.valid)]
        tile = tiles.o.payload

        part = Signal(range(config.folds))
        index = Signal(config.index_bits)
        entry = Signal(range(config.logit_entries))
        slot = Signal(range(LOGIT_TILES))
        spacings = [spacing(config, parts=n + 1, closes=True) for n in range(config.folds)]
        # Cycles until a tile may end, and until a merge may begin; the ended tile that waits for its merge.
        end_wait = Signal(range(timing.ends))
        merge_wait = Signal(range(max(spacings)))
        waiting = Signal(TileEnd(config))
        bank = Signal()
        banks = banks_behind(config)
        banks_free = Signal(range(banks + 1), init=banks)
        ends_key, last_key, lacks_bank, room, arrived, issue = (
            Signal(name=name) for name in ("ends_key", "last_key", "lacks_bank", "room", "there", "issue")
        )
        m.d.comb += [
            ends_key.eq(part == tile.last_value_part),
            last_key.eq(index == tile.last_index),
            lacks_bank.eq(tile.closes & (banks_free == 0)),
            room.eq(tiles.o.valid & (~last_key | ((end_wait == 0) & ~waiting.valid & ~lacks_bank))),
            arrived.eq(self.i_value.valid),
            self.i_value.ready.eq(room),
            issue.eq(room & arrived),
            self.freed.eq(issue & ends_key),
            self.ended.eq(issue & ends_key & last_key),
            tiles.o.ready.eq(self.ended),
            self.blocked.eq(tiles.o.valid & last_key & lacks_bank),
            self.starved.eq(room & ~arrived),
        ]
        if self._leads:
            m.d.comb += [
                arrived.eq(self.own_valid | self.i_value.valid),  # each valid only in passes of its own kind
                self.own_take.eq(issue & self.decode),
                self.own_last.eq(ends_key & last_key & tile.closes),
                self.own_keep.eq(tile.keep & self.decode),  # without a tile, the queue's output is undefined
            ]
        with m.If(issue):
            m.d.sync += part.eq(Mux(ends_key, 0, part + 1))
        with m.If(self.freed):
            m.d.sync += [index.eq(Mux(last_key, 0, index + 1)), entry.eq(entry + 1)]
        with m.If(self.ended):
            m.d.sync += slot.eq(slot + 1)
        closes = self.ended & tile.closes
        m.d.sync += [banks_free.eq(banks_free + self.bank_freed - closes), bank.eq(bank ^ closes)]
        if config.decodes:
            with m.If(self.restart):
                m.d.sync += bank.eq(0)

        merged = self._next_merge(m, tile, bank, end_wait, merge_wait, waiting)

        step = Signal(ValueStep(config))
        read = Signal(LogitRead(config))
        m.d.comb += [
            read.valid.eq(issue),
            read.slot.eq(slot),
            read.entry.eq(entry),
            read.first.eq(issue & (index == 0) & (part == 0)),
            read.last.eq(self.ended),
            self.read.eq(delay(m, "read", read, timing.read)),
            self.exponent.eq(delay(m, "exponent", issue, timing.exponent)),
            self.value.eq(delay(m, "value", self.i_value.payload, timing.step, reset=False)),
            step.part.eq(part),
            step.last_part.eq(tile.last_value_part),
            step.turn.eq(issue & (tile.last_value_part != 0)),
            step.first.eq(issue & (index == 0)),
            step.ends.eq(issue & last_key),
            step.last.eq(self.ended),
            self.step.eq(delay(m, "step", step, timing.step)),
        ]
        self._merge(m, delay(m, "merged", merged, timing.merge - 1))
        return m

    def _next_merge(
        self, m: Module, tile: Any, bank: Signal, end_wait: Signal, merge_wait: Signal, waiting: Any
    ) -> Any:
        """Return the tile whose merge begins: the one that waits for it, else the one that ends now."""
        timing = CoreTiming(self._config)
        end = Signal(TileEnd(self._config))
        merged = Signal(TileEnd(self._config))
        free = Signal()
        m.d.comb += [
            free.eq(merge_wait == 0),
            end.valid.eq(self.ended),
            end.tile.eq(tile),
            end.bank.eq(bank),
            merged.eq(Mux(waiting.valid, waiting, end)),
            merged.valid.eq(free & (waiting.valid | self.ended)),
            self.closed.eq(merged.valid & merged.tile.closes),
        ]
        m.d.sync += waiting.valid.eq(~free & (waiting.valid | self.ended))
        with m.If(self.ended):
            m.d.sync += [waiting.tile.eq(tile), waiting.bank.eq(bank)]
        with m.If(merged.valid):
            m.d.sync += [
                end_wait.eq(timing.ends - 1),
                merge_wait.eq(
                    Mux(merged.tile.closes, self._wait(merged.tile, True), self._wait(merged.tile, False))
                ),
            ]
        with m.Else():
            m.d.sync += [
                end_wait.eq(Mux(end_wait == 0, 0, end_wait - 1)),
                merge_wait.eq(Mux(free, 0, merge_wait - 1)),
            ]
        return merged

    def _wait(self, tile: Any, closes: bool) -> Any:
        """Look up the cycles, after the next one, in which the merge of the next tile must not begin."""
        config = self._config
        waits = [spacing(config, parts=n + 1, closes=closes) - 1 for n in range(config.folds)]
        return Array(Const(wait, range(max(waits) + 1)) for wait in waits)[tile.last_value_part]

    def _merge(self, m: Module, before: Any) -> None:
        """Step the rows through the merge; ``before`` is the end of a tile in the cycle before step 0."""
        config = self._config
        merging = Signal(TileEnd(config), reset_less=True)
        with m.If(before.valid):
            m.d.sync += merging.eq(before)
        last = Array(
            Const((n + 1) * config.part_steps - 1, range(config.merge_steps)) for n in range(config.folds)
        )[merging.tile.last_value_part]
        count_steps(m, "merge", before.valid, last, self.merge)
        m.d.comb += [
            self.merge.begins.eq(before.valid),
            self.merge.opens.eq(merging.tile.opens),
            self.merge.closes.eq(merging.tile.closes),
            self.merge.bank.eq(merging.bank),
        ]
