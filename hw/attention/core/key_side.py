"""Key side of one stream: broadcasts parts of keys to the rows, and reports tiles with complete logits."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import CAP_BITS, KEY_BITS, AttentionConfig
from hw.attention.core.command import PART_LATENCY, BufferedTile, TileCommand
from hw.attention.core.row.maximum import LOGIT_TILES, LogitWrite
from hw.attention.core.row.score import QueryPick
from hw.attention.core.timing import CoreTiming
from hw.lib.delay import delay


class KeySide(wiring.Component):
    """Issues parts of keys.

    ``leads``: with ``decode`` of the configuration: whether the cells of all streams follow this one in
    passes that decode.

    Behaviour
    ---------
    One part a cycle, across tiles and passes.  The first part of a key is taken at the earliest in the cycle
    after its entry of the logit buffer is freed.  In a pass that decodes parts reach the cells directly,
    `PART_LATENCY` - 1 cycles later than `key` would, and their control is delayed by as much.
    """

    def __init__(self, config: AttentionConfig, *, leads: bool = False) -> None:
        self._config = config
        self._leads = leads
        elements = data.ArrayLayout(signed(8), config.lanes)
        members = {
            "loaded": In(1),  #: The queries of a pass are loaded.
            #: The pass becomes the current one: in this cycle at the earliest, and with the last part of the
            #: pass before.
            "take": Out(1),
            #: ``i_tile``, ``i_key``: see `hw.attention.core.command`.
            "i_tile": In(stream.Signature(TileCommand(config))),
            "i_key": In(stream.Signature(elements)),
            #: To the rows: the part taken in the cycle before; undefined if none was.
            "key": Out(elements),
            #: ``pick``, ``accumulate``, ``first``, ``adopt``, ``index``, ``cap``, ``write``: to the rows,
            #: each at its stage (`CoreTiming`); ``index`` is the ``key`` of its `RowControl`.
            "pick": Out(QueryPick(config)),
            "accumulate": Out(1),
            "first": Out(1),
            "adopt": Out(1),
            "index": Out(KEY_BITS),
            "cap": Out(CAP_BITS if config.logit_cap else 0),
            "write": Out(LogitWrite(config)),
            "freed": In(1),  #: A logit is read for the last time.
            "ended": In(1),  #: It was the last of its tile.
            #: Complete tiles, valid for a cycle: the receiver must always have room for `LOGIT_TILES` of
            #: them.
            "tile": Out(stream.Signature(BufferedTile(config), always_ready=True)),
            #: ``issue``, ``blocked``, ``starved``, ``idle``: in this cycle a part is taken; or the logit
            #: buffers are full; or no part has arrived; or there is no pass.
            "issue": Out(1),
            "blocked": Out(1),
            "starved": Out(1),
            "idle": Out(1),
        }
        if config.decodes:
            members["restart"] = In(1)  #: See `hw.attention.core.core.AttentionCore`.
        if leads:
            members |= {
                #: Passes decode; ``own_*``: parts of keys, one for each cell, of a `PartSource`.
                "decode": In(1),
                "own_valid": In(1),
            }
            members |= {name: Out(1) for name in ("own_take", "own_last", "own_keep")}
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, tile = self._config, self.i_tile.payload
        active = Signal()
        part = Signal(range(config.folds))
        index = Signal(config.index_bits)
        room = Signal()
        ends_key = Signal()
        ends_tile = Signal()
        ends_pass = Signal()
        takes_key = Signal()
        takes_tile = Signal()
        ready = Signal()
        m.d.comb += [
            ends_key.eq(part == tile.last_key_part),
            ends_tile.eq(ends_key & (index == tile.last_index)),
            ends_pass.eq(ends_tile & tile.closes),
            ready.eq(active & room & self.i_tile.valid),
            self.i_key.ready.eq(ready),
            self.issue.eq(ready & self.i_key.valid),
            takes_key.eq(self.issue & ends_key),
            takes_tile.eq(self.issue & ends_tile),
            self.i_tile.ready.eq(takes_tile),
            self.take.eq(self.loaded & (~active | (self.issue & ends_pass))),
            self.blocked.eq(active & ~room),
            self.starved.eq(active & room & ~self.issue),
            self.idle.eq(~active),
        ]
        if self._leads:
            m.d.comb += [
                # Each is valid only in passes of its own kind.
                self.issue.eq(ready & (self.own_valid | self.i_key.valid)),
                self.own_take.eq(self.issue & self.decode),
                self.own_last.eq(ends_pass),
                self.own_keep.eq(tile.keep & self.decode),
            ]
        # In every cycle, as a part that was not taken is ignored: an enable would have 8 D loads.
        m.d.sync += self.key.eq(self.i_key.payload)
        with m.If(self.issue):
            m.d.sync += part.eq(Mux(ends_key, 0, part + 1))
        with m.If(takes_key):
            m.d.sync += index.eq(Mux(ends_tile, 0, index + 1))
        with m.If(self.take):
            m.d.sync += active.eq(1)
        with m.Elif(self.issue & ends_pass):
            m.d.sync += active.eq(0)
        self._pick(m, active, part, ends_key)

        # Room in the logit buffers: entries, and complete tiles.
        entry = Signal(range(config.logit_entries))
        slot = Signal(range(LOGIT_TILES))
        entries = Signal(range(config.logit_entries + 1))
        tiles = Signal(range(LOGIT_TILES + 1))
        m.d.comb += room.eq((entries != config.logit_entries) & (tiles != LOGIT_TILES))
        m.d.sync += [
            entries.eq(entries + takes_key - self.freed),
            tiles.eq(tiles + takes_tile - self.ended),
            entry.eq(entry + takes_key),
            slot.eq(slot + takes_tile),
        ]

        timing = CoreTiming(config)
        write = Signal(LogitWrite(config))
        complete = Signal(BufferedTile(config))
        m.d.comb += [
            write.valid.eq(takes_key),
            write.slot.eq(slot),
            write.entry.eq(entry),
            write.first.eq(index == 0),
            write.last.eq(ends_tile),
            write.opens.eq(tile.opens),
            complete.last_index.eq(index),
            complete.opens.eq(tile.opens),
            complete.closes.eq(tile.closes),
            complete.last_value_part.eq(tile.last_value_part),
        ]
        if config.decodes:
            m.d.comb += complete.keep.eq(tile.keep)
        # A part taken now is on `key` in the next cycle; a queue of one cycle follows `tile`.
        above: Any = Cat(Const(0, config.stream_bits), index)
        if self._leads:
            above = Mux(self.decode, Cat(Const(0, config.decode_stream_bits), index), above)
        number = (tile.first + above)[:KEY_BITS]
        m.d.comb += [
            self.index.eq(self._later(m, "index", number, 1 + timing.scale, reset=False)),
            self.write.eq(self._later(m, "write", write, 1 + timing.write)),
            self.tile.valid.eq(self._later(m, "tile_valid", takes_tile, timing.ready)),
            self.tile.payload.eq(self._later(m, "tile", complete, timing.ready, reset=False)),
        ]
        if config.folds > 1:
            m.d.comb += [
                self.accumulate.eq(self._later(m, "accumulate", self.issue, 1 + timing.first)),
                self.first.eq(self._later(m, "first", part == 0, 1 + timing.first)),
            ]
        if config.logit_cap:
            m.d.comb += self.cap.eq(self._later(m, "cap", tile.cap, 1 + timing.cap, reset=False))
        return m

    def _later(self, m: Module, name: str, value: Any, cycles: int, *, reset: bool = True) -> Any:
        """Delay the control of a part of a key; in passes that decode by the delay of the part, too."""
        given = delay(m, name, value, cycles, reset=reset)
        if not self._leads:
            return given
        return Mux(self.decode, delay(m, f"own_{name}", given, PART_LATENCY - 1, reset=reset), given)

    def _pick(self, m: Module, active: Signal, part: Signal, ends_key: Signal) -> None:
        """Pick each part of the queries once, in the first cycle in which its key's part may arrive."""
        config = self._config
        bank = Signal(init=1)
        picked = Signal()
        opens = Signal()
        pick = Signal(QueryPick(config))
        m.d.comb += [
            pick.valid.eq(active & ~picked),
            pick.place.bank.eq(bank),
            pick.place.part.eq(part),
            self.pick.eq(self._later(m, "pick", pick, 0)),
        ]
        one_part = ends_key & (part == 0)
        with m.If(self.take):
            m.d.sync += [picked.eq(0), opens.eq(1), bank.eq(~bank)]
        with m.Elif(active):
            # Another part is next, unless keys have just one.
            m.d.sync += [picked.eq(~self.issue | one_part), opens.eq(0)]
        adopt = pick.valid & opens
        m.d.comb += self.adopt.eq(self._later(m, "adopt", adopt, 1 + CoreTiming(config).adopt))
        if config.decodes:
            with m.If(self.restart):
                m.d.sync += bank.eq(1)
