"""Tags of a stream's caches: the tiles they hold, and the keys of each."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.walk.job_setup import tile_shape
from hw.attention.walk.layouts import TilePlan, TileRequest
from hw.lib.memory import ports

#: Bits of the epoch, which counts K/V heads; when it wraps, the tags are cleared one by one.
EPOCH_BITS = 12


class CacheTags(wiring.Component):
    """Decides for each tile which keys the caches replay, which are fetched, and whether these are stored.

    ``epoch_bits``: see `EPOCH_BITS`.

    Behaviour
    ---------
    A tile's slot is its number if that is less than the number of slots, or, with a ring, its number modulo
    the slots.  A slot holds a range of the tile's keys, stored since the last ``clear``.  If the first
    requested key is in this range or just behind it, the caches replay the keys up to the end of the range.
    Otherwise they replay none.  The others are fetched, and stored if the tile has a slot.  So causal passes
    and moving windows complete a tile step by step, and no key is fetched twice while its tile keeps the
    slot.  A request before the range fetches the tile anew.

    A tile every 4 cycles, with a latency of 3, or of 1 if it clears; without caches a tile a cycle.

    Why
    ---
    One memory of tags serves dense, causal, windowed and sparse passes.  An epoch number separates the tags
    of a K/V head from older ones, so a change of heads costs no cycle.  The stored keys of a tile have no
    gap, so two numbers describe them.
    """

    def __init__(self, config: AttentionConfig, *, epoch_bits: int = EPOCH_BITS) -> None:
        self._config = config
        self._epoch_bits = epoch_bits
        super().__init__(
            {
                "i": In(stream.Signature(TileRequest(config))),
                "o": Out(stream.Signature(TilePlan(config))),
            }
        )

    @staticmethod
    def latency(config: AttentionConfig, *, clears: bool) -> int:
        """Return the cycles from ``i`` to ``o``, of a tile that clears, or of another one."""
        return (1 if clears else 3) if config.cached_keys else 0

    @staticmethod
    def interval(config: AttentionConfig) -> int:
        """Return the cycles from a tile to the next."""
        return 4 if config.cached_keys else 1

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, request, o = self._config, self.i.payload, self.o.payload
        if not config.cached_keys:
            m.d.comb += [
                o.request.eq(request),
                o.held.eq(request.lead),
                self.o.valid.eq(self.i.valid),
                self.i.ready.eq(self.o.ready),
            ]
            return m
        command, source = request.command, request.source
        tag_layout = data.StructLayout(
            {
                "epoch": self._epoch_bits,
                "tile": tile_shape(config),
                "start": config.index_bits,  # the first cached key, and the end of the range
                "end": config.index_bits + 1,
            }
        )
        slots = config.cached_keys // config.tile_keys
        # All tags start as zero, an epoch that never occurs: epochs count from 1.
        style = "block" if slots > 64 else "distributed"
        m.submodules.tags = tags = memory.Memory(
            shape=tag_layout, depth=slots, init=[], attrs={"ram_style": style}
        )
        write, read = ports(tags)
        # Reset keeps the tags, so it keeps the epoch: restarted, it would match old tags.
        epoch = Signal(self._epoch_bits, init=1, reset_less=True)
        cleared = Signal()  # the tile at hand has cleared
        wiped = Signal(range(slots))
        place = Signal()  # the tile has a slot
        asked, known, end = (Signal(config.index_bits + 1, name=name) for name in ("asked", "known", "end"))
        start = Signal(config.index_bits)
        same = Signal()
        tag, lead = read.data, request.lead
        m.d.comb += [
            o.slot.eq(Mux(source.ring, request.tile & (source.slots - 1), request.tile)),
            place.eq(~command.dummy & (source.slots != 0) & (source.ring | (request.tile < source.slots))),
            asked.eq(request.last + 1),
            read.addr.eq(o.slot),
            write.addr.eq(o.slot),
            write.data.epoch.eq(epoch),
            write.data.tile.eq(request.tile),
            write.data.start.eq(start),
            write.data.end.eq(end),
            o.request.eq(request),
        ]
        with m.FSM():
            with m.State("LOOK"), m.If(self.i.valid):
                m.next = "FOUND"
                with m.If(request.clear & ~cleared):
                    m.d.sync += [epoch.eq(epoch + 1), o.held.eq(lead), o.store.eq(place)]
                    m.d.sync += [start.eq(lead), end.eq(asked)]
                    m.next = "OFFER"
                    with m.If(epoch.all()):
                        m.next = "WIPE"
            with m.State("FOUND"):
                m.d.sync += [
                    same.eq(place & (tag.epoch == epoch) & (tag.tile == request.tile)),
                    start.eq(tag.start),
                    known.eq(tag.end),
                ]
                m.next = "KNOWN"
            with m.State("KNOWN"):
                # Otherwise the range would have a gap, or would lack the first key.
                joins = same & (start <= lead) & (lead <= known)
                m.d.sync += [
                    o.held.eq(Mux(joins, Mux(known < asked, known, asked), lead)),
                    o.store.eq(place),
                    start.eq(Mux(joins, start, lead)),
                    end.eq(Mux(joins & (known >= asked), known, asked)),
                ]
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.comb += [self.i.ready.eq(1), write.en.eq(o.store)]
                    m.d.sync += cleared.eq(0)
                    m.next = "LOOK"
            with m.State("WIPE"):
                m.d.comb += [write.en.eq(1), write.addr.eq(wiped), write.data.eq(0)]
                m.d.sync += wiped.eq(wiped + 1)
                with m.If(wiped == slots - 1):
                    m.d.sync += [wiped.eq(0), epoch.eq(1), cleared.eq(1)]
                    m.next = "LOOK"
        return m
