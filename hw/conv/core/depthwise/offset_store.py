"""A queue of offsets, of which the entries of the current pixel are read in any order."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.depthwise.gather_scan import GatherScan, MissedStep, place_bits
from hw.conv.core.layouts import OffsetCommand, offset_entry
from hw.lib.memory import ports, uninitialised


class OffsetStore(wiring.Component):
    """A queue of entries of T taps; entries of its first pixel are read at random.

    Behaviour
    ---------
    An entry a cycle in; an entry a cycle and generator out.
    """

    #: Cycles from ``entry`` to ``o``.
    LATENCY = 3
    #: Cycles from a pixel's last entry to ``pixel``, without those of `GatherScan` and of the gather buffer.
    PIXEL_LATENCY = 2
    #: Cycles from the last entry of a layer to the first of the next one, without those of `GatherScan`.
    #: Cycles from ``release`` to an entry that finds room.  Entries in flight when the last room is seen.
    TURN_LATENCY = 2
    ROOM_LATENCY = 2
    LATE_ENTRIES = 2

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        members: dict[str, Any] = {
            #: One for each layer with offsets; taken when its first entry may arrive.
            "command": In(stream.Signature(OffsetCommand(config))),
            "i": In(stream.Signature(offset_entry(config))),  #: ``entries`` for each of ``pixels``.
            #: The entries of ``i`` are computed on chip; they may belong to a later layer than the one
            #: sampled.
            "computed": Out(1),
            "pixel": Out(1),  #: All entries of another pixel have arrived.
            "claim": In(1),  #: That pixel is taken; only with ``pixel``.
            #: The ``entry`` of this cycle is the last one of its pixel; the next cycle's ``entry`` is of the
            #: next pixel.
            "release": In(1),
            "entries": In(range(config.offset_entries + 1)),  #: Entries of that pixel.
            #: The entries of that pixel to read.
            "entry": In(range(config.offset_entries)).array(config.generators),
            #: The entries read, `LATENCY` cycles later, clamped to the command's bounds.
            "o": Out(offset_entry(config)).array(config.generators),
        }
        if config.gather_words:
            members |= {
                #: ``missed``, ``step``: of arriving entries, see `GatherScan`.
                "missed": Out(1),
                "step": Out(MissedStep(config)),
                "full": In(1),  #: No more steps may be missed.
                #: One-cycle pulse for each pixel that ended among ``missed``, in order: it may be claimed.
                "complete": In(1),
                #: ``misses``, ``place``: of the first generator's entry, in the cycle of ``o``; see
                #: `GatherScan`.
                "misses": Out(config.taps),
                "place": Out(place_bits(config)),
            }
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Write a ring of entries, a copy for each generator."""
        m = Module()
        config = self._config
        depth = config.offset_entries
        command = Signal(OffsetCommand(config))
        active = Signal()
        left = Signal.like(command.pixels)  # pixels after this one
        entries_left = Signal.like(command.entries)
        taken = Signal()
        pixel_ends = Signal()
        free = Signal(range(depth + 1), init=depth)
        room = Signal(init=1)
        settled = Signal(init=1)
        prepared = Signal(init=1)
        full = Signal()
        m.d.comb += [
            self.command.ready.eq(~active & settled),
            self.computed.eq(command.dot),
            self.i.ready.eq(active & prepared & room),
            taken.eq(self.i.valid & self.i.ready),
            pixel_ends.eq(taken & (entries_left == 0)),
        ]
        with m.If(taken):
            m.d.sync += entries_left.eq(Mux(pixel_ends, command.entries - 1, entries_left - 1))
        with m.If(pixel_ends):
            m.d.sync += [left.eq(left - 1), active.eq(left != 0)]
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [
                active.eq(1),
                command.eq(self.command.payload),
                left.eq(self.command.payload.pixels - 1),
                entries_left.eq(self.command.payload.entries - 1),
            ]

        # Entries are clamped, scanned, then written.
        clamped = Signal(offset_entry(config))
        write = Signal()
        arrived = Signal()
        put = Signal()
        ends = Signal()
        m.d.sync += [put.eq(taken), ends.eq(pixel_ends)]
        self._clamp(m, command, clamped)
        entry: Any = clamped
        beside: Any = Cat()  # written beside the first generator's entries
        if config.gather_words:
            m.submodules.scan = scan = GatherScan(config)
            starts = Signal()
            m.d.sync += [
                starts.eq(self.command.valid & self.command.ready),
                scan.last.eq(pixel_ends & (left == 0)),
                full.eq(self.full),
            ]
            entry, beside = scan.o, Cat(scan.misses, scan.place)
            m.d.comb += [
                scan.start.eq(starts),
                scan.job.eq(command.tap),
                scan.put.eq(put),
                scan.i.eq(clamped),
                scan.ends.eq(ends),
                settled.eq(~put & ~scan.busy),
                prepared.eq(scan.ready & ~starts),
                write.eq(scan.taken),
                arrived.eq(self.complete),
                self.missed.eq(scan.missed),
                self.step.eq(scan.step),
            ]
        else:
            m.d.comb += [write.eq(put), arrived.eq(ends)]
        place = Signal(range(depth))
        with m.If(write):
            m.d.sync += place.eq(place + 1)

        # Pixels that are complete and not claimed; free places of the ring.
        ready_pixels = Signal(range(depth + 1))
        with m.If(arrived & ~self.claim):
            m.d.sync += [ready_pixels.eq(ready_pixels + 1), self.pixel.eq(1)]
        with m.If(self.claim & ~arrived):
            m.d.sync += [ready_pixels.eq(ready_pixels - 1), self.pixel.eq(ready_pixels != 1)]
        first = Signal(range(depth))  # first place of the pixel that is read
        released = Signal.like(self.entries)
        m.d.comb += released.eq(Mux(self.release, self.entries, 0))
        m.d.sync += [first.eq(first + released), free.eq(free + released - taken)]
        # `free` is a cycle late.
        m.d.sync += room.eq((free > self.LATE_ENTRIES) & ~full)

        self._rams(m, entry, beside, write=write, place=place, first=first)
        return m

    def _clamp(self, m: Module, command: Any, clamped: Any) -> None:
        """Clamp an entry to the bounds of its layer."""
        for tap in range(self._config.taps):
            source, target = self.i.payload[tap], clamped[tap]
            m.d.sync += target.mask.eq(source.mask)
            for name in ("dy", "dx"):
                value = source[name]
                m.d.sync += target[name].eq(
                    Mux(value < command.low, command.low, Mux(value > command.high, command.high, value))
                )

    def _rams(
        self, m: Module, entry: Any, beside: Any, *, write: Signal, place: Signal, first: Signal
    ) -> None:
        """Write an entry to every copy of the ring, and read each copy for its generator."""
        config, depth = self._config, self._config.offset_entries
        for g in range(config.generators):
            written = Cat(entry.as_value(), beside if g == 0 else Cat())
            ram = uninitialised(
                width=len(written),
                depth=depth,
                ram_style="distributed" if depth <= 64 else "block",
            )
            m.submodules[f"ram_{g}"] = ram
            port, read = ports(ram)
            address = Signal(range(depth), name=f"address_{g}", reset_less=True)
            held = Signal(len(written), name=f"held_{g}", reset_less=True)
            m.d.comb += [
                port.en.eq(write),
                port.addr.eq(place),
                port.data.eq(written),
                read.en.eq(1),
                read.addr.eq(address),
                self.o[g].as_value().eq(held),
            ]
            m.d.sync += [address.eq(first + self.entry[g]), held.eq(read.data)]
            if config.gather_words and g == 0:
                m.d.comb += Cat(self.misses, self.place).eq(held[len(self.o[g].as_value()) :])
