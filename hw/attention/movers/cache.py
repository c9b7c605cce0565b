"""Cache of the keys, or of the values, of one stream: hits come from on-chip memory, misses from ports."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.movers.part_reader import PartReader
from hw.attention.walk.layouts import PartCommand
from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.loads import LOADS, copies
from hw.lib.memory import RamStyle, ports, uninitialised
from hw.lib.rows.cutter import RowPart
from hw.lib.skid import Skid

#: Fewest entries for which UltraRAM (4,096 words deep) is the better choice.
ULTRA_DEPTH = 2048
#: Entries of the queue behind the memory: the parts in the pipeline when the consumer stops, and some more;
#: with a `PartReader`, whose pipeline is longer, twice as many.
_PLACES = 8
_DECODE_PLACES = 16


class PartCache(wiring.Component):
    """Merges the cached and the fetched parts of tiles.

    Behaviour
    ---------
    A part a cycle from either source.  The parts of a placeholder are those of slot 0, or zero without a
    memory. From ``i`` to ``o`` it takes 4 cycles, without a cache 1; from ``take`` 7.

    Why
    ---
    Parts from memory and from ports go through one pipeline of fixed length. A read of the memory is in the
    same stage as a part from a port and its write.  So there is no arbiter, parts keep their order, and a
    tile can be replayed in the cycle after it was stored.  The pipeline never stalls: a part enters only with
    a credit for the queue behind it. With ``decode`` a part is taken at the entrance and arrives later,
    inside the pipeline; all others are delayed by as much.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        ports = config.ports
        #: Rows of the keys that are not cached: of key n of a tile, from port n % P.
        source: dict[str, Any] = {"i": In(stream.Signature(RowPart(config.part_bits))).array(ports)}
        if config.decodes:
            parts = data.ArrayLayout(config.part_bits, ports)
            source = {
                #: ``available``, ``take``, ``part``: of the `PartReader` of each port.
                "available": In(ports),
                "take": Out(ports),
                "part": In(parts),
            }
        super().__init__(
            {
                "command": In(stream.Signature(PartCommand(config))),
                **source,
                #: The keys of each tile in order, from key ``lead`` on.
                "o": Out(stream.Signature(data.ArrayLayout(signed(8), config.lanes))),
            }
        )
        # Overflow of the queue; a proof shows that the credits prevent it.
        self.lost = Signal()
        # Cycles from the entrance to a part; entries of the queue; parts in the pipeline; credits; level of
        # the queue.
        self._late = PartReader.LATENCY if config.decodes else 0
        self._places = _DECODE_PLACES if config.decodes else _PLACES
        self.under_way = Signal(3 + self._late)
        self.free = Signal(range(self._places + 1), init=self._places)
        self.level = Signal(range(self._places + 1))

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Return the cycles from a part's entrance to ``o``."""
        if config.decodes:
            return 4 + PartReader.LATENCY
        return 4 if config.cached_keys else Skid.LATENCY

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, command = self._config, self.command.payload
        room = Signal()
        issue = Signal()
        from_port = Signal()
        key = Signal(config.index_bits + 1)
        part = Signal(range(config.folds))
        port = Signal(range(config.ports))
        started = Signal()  # a part of the tile was issued
        now = Signal.like(port)
        if config.decodes:
            given = self._given(m, now)
            here = Array(self.available)[now]
        else:
            given = Array([source.payload.elements for source in self.i])[now]
            here = Array([source.valid for source in self.i])[now]
        ends_key = part == command.last_part
        ends_tile = ends_key & (key == command.keys - 1)
        m.d.comb += [
            now.eq(Mux(started, port, command.port)),
            from_port.eq(~command.dummy & (key >= command.held)),
            issue.eq(self.command.valid & room & (here | ~from_port)),
            self.command.ready.eq(issue & ends_tile),
        ]
        takes = self.take if config.decodes else [source.ready for source in self.i]
        for p, take in enumerate(takes):
            m.d.comb += take.eq(issue & from_port & (now == p))
        with m.If(issue):
            m.d.sync += [started.eq(~ends_tile), part.eq(part + 1)]
            with m.If(~started):
                m.d.sync += port.eq(command.port)
            with m.If(ends_key):
                m.d.sync += [part.eq(0), key.eq(Mux(ends_tile, 0, key + 1))]
                with m.If(from_port):
                    m.d.sync += port.eq(_next(config, now))

        if config.cached_keys:
            self._with_memory(m, room, issue, from_port, given, started)
        else:
            m.submodules.skid = skid = Skid(config.part_bits)
            m.d.comb += [
                room.eq(skid.i.ready),
                skid.i.valid.eq(issue),
                skid.i.payload.eq(Mux(command.dummy, 0, given)),
                self.o.payload.eq(skid.o.payload),
                self.o.valid.eq(skid.o.valid),
                skid.o.ready.eq(self.o.ready),
            ]
        return m

    def _given(self, m: Module, now: Signal) -> Value:
        """Select the part of the port ``now``, in a register for every `LOADS` bits."""
        width = self._config.part_bits
        early = delay(m, "port", now, self._late - 1, reset=False)
        own = copies(Signal(early.shape(), name="chosen"), -(-width // LOADS))
        m.d.sync += [copy.eq(early) for copy in own]
        return Cat(
            Array([part[low : low + LOADS] for part in self.part])[copy]
            for low, copy in zip(range(0, width, LOADS), own, strict=True)
        )

    def _with_memory(
        self, m: Module, room: Signal, issue: Signal, from_port: Signal, given: Any, started: Signal
    ) -> None:
        """Stages: address; memory; its output latch; its output register; queue."""
        config, command = self._config, self.command.payload
        style: RamStyle = "ultra" if config.cached_keys >= ULTRA_DEPTH else "block"
        m.submodules.memory = ram = uninitialised(
            width=config.part_bits, depth=config.cached_keys, ram_style=style
        )
        write, read = ports(ram)

        # Entries of a tile are consecutive; its key n is at (slot * T + n) * (last_part + 1).
        following = Signal(range(config.cached_keys))
        entry = Signal(range(config.cached_keys))
        place = Cat(command.lead, command.slot)
        first = Array([place * (n + 1) for n in range(config.folds)])[command.last_part]
        m.d.comb += entry.eq(Mux(started, following, first))

        address = Signal(range(config.cached_keys), reset_less=True)
        valid = [Signal(name=f"valid_{n}") for n in range(3)]
        ported = [Signal(name=f"from_port_{n}", reset_less=True) for n in range(2)]
        # Select of memory or port, in a register for every `LOADS` bits.
        of_ports = copies(Signal(name="of_port", reset_less=True), -(-config.part_bits // LOADS))
        parts = [Signal(config.part_bits, name=f"part_{n}", reset_less=True) for n in range(3)]
        stored = Signal()
        read_out = Signal(config.part_bits, reset_less=True)
        with m.If(issue):
            m.d.sync += following.eq(entry + 1)
        issued = [issue]
        for n in range(self._late):
            issued.append(delay(m, f"issued_{n}", issued[-1], 1))

        def late(name: str, value: Any, *, reset: bool = False) -> Any:
            """Delay a signal to the cycle in which its part arrives."""
            return delay(m, name, value, self._late, reset=reset)

        of_port = late("of_port", from_port)
        m.d.sync += [
            address.eq(late("entry", entry)),
            stored.eq(late("stores", issue & from_port & command.store, reset=True)),
            *(later.eq(now) for now, later in zip([issued[-1], *valid], valid, strict=False)),
            *(later.eq(now) for now, later in zip([of_port, *ported], ported, strict=False)),
            *(later.eq(now) for now, later in zip([given, *parts], parts, strict=False)),
            *(chosen.eq(ported[1]) for chosen in of_ports),
            read_out.eq(read.data),
        ]
        m.d.comb += [
            write.en.eq(stored),
            write.addr.eq(address),
            write.data.eq(parts[0]),
            read.en.eq(valid[0] & ~ported[0]),
            read.addr.eq(address),
        ]
        m.submodules.places = places = Fifo(config.part_bits, depth=self._places)
        m.d.comb += [
            room.eq(self.free != 0),
            self.under_way.eq(Cat(*issued[1:], *valid)),
            self.level.eq(places.level),
            self.lost.eq(places.i.valid & ~places.i.ready),
            places.i.valid.eq(valid[2]),
            places.i.payload.eq(
                Cat(
                    Mux(chosen, parts[2][low : low + LOADS], read_out[low : low + LOADS])
                    for low, chosen in zip(range(0, config.part_bits, LOADS), of_ports, strict=True)
                )
            ),
            self.o.payload.eq(places.o.payload),
            self.o.valid.eq(places.o.valid),
            places.o.ready.eq(self.o.ready),
        ]
        m.d.sync += self.free.eq(self.free - issue + (places.o.valid & places.o.ready))


def _next(config: AttentionConfig, port: Signal) -> Any:
    """Return the port of the next key."""
    return (port + 1)[: len(port)] if config.ports > 1 else Const(0, 0)
