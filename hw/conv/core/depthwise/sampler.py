"""The line buffer and its readers: layers in, words of four banks and their control out."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.depthwise.cell import LaneCell
from hw.conv.core.depthwise.coordinates import Coordinates
from hw.conv.core.depthwise.fill import Fill
from hw.conv.core.depthwise.gather_buffer import GatherBuffer
from hw.conv.core.depthwise.offset_store import OffsetStore
from hw.conv.core.depthwise.strip_walker import StripWalker
from hw.conv.core.depthwise.tables import LayerTables
from hw.conv.core.depthwise.tap_walker import TapWalker
from hw.conv.core.layouts import (
    GatherRequest,
    OffsetCommand,
    Offsets,
    SamplePoint,
    TapCommand,
    TapControl,
    TapRead,
    offset_entry,
)
from hw.lib.delay import delay
from hw.lib.memory import BankedMemory

#: Cycles from a walker's step to the entry of its offset, to the coordinates, and to the banks' addresses.
_ENTRY = 2
_PLACE = _ENTRY + OffsetStore.LATENCY
_READ = _PLACE + Coordinates.LATENCY + 1
#: Cycles from an address to the bank's word.
_BANK = 2


class Sampler(wiring.Component):
    """Fills the line buffer and samples it, layer by layer.

    Behaviour
    ---------
    A step a cycle, see `TapWalker` and `StripWalker`.  The pipeline drains between two layers, including that
    of the lane cells.
    """

    #: Cycles from a walker's step to the words that it reads.
    LATENCY = _READ + _BANK
    #: Cycles from a pixel's last step to the end of its offsets.
    ENTRY_LATENCY = _ENTRY
    #: Cycles from ``loaded``, and from the tables, to the earliest begin of a row.
    PREPARED_LATENCY = 1

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        members: dict[str, Any] = {
            "command": In(stream.Signature(TapCommand(config))),
            #: For layers with offsets.
            "offset_command": In(stream.Signature(OffsetCommand(config))),
            "i": In(stream.Signature(config.word_bits)),  #: Maps.
            "offsets": In(stream.Signature(offset_entry(config))),
            "token": Out(stream.Signature(1)),  #: See `Fill`.
            "loaded": In(1),  #: The weights of the next layer with sums are in their RAM; until ``release``.
            #: ``start``, ``job``, ``half``, ``open``: a layer begins; the layer; its half of the weights'
            #: RAMs; words of its map are outstanding.
            "start": Out(1),
            "job": Out(TapCommand(config)),
            "half": Out(1),
            "open": Out(1),
            "computed": Out(1),  #: See `OffsetStore`.
            "release": Out(1),  #: One-cycle pulse: the weights are no longer read.
            "room": In(1),  #: Another word of results may begin.
            "begins": Out(1),  #: One began a cycle ago.
            #: ``read``, ``control``, ``points``: to lane cells; ``read`` two cycles before ``control`` and
            #: ``points``.
            "read": Out(TapRead(config)),
            "control": Out(TapControl(config)),
            "points": Out(SamplePoint(config)).array(config.taps, config.generators),
            #: Words of the four banks, or of the gather buffer, for each tap; in the cycle of ``control``.
            "words": Out(config.word_bits).array(config.taps, 4),
            "busy": Out(1),  #: A layer is active.
            "waits": Out(3),  #: As of `TapWalker`; bit 2: for weights.
        }
        if config.gather_words:
            #: ``requests``, ``gathered``: pixels that are fetched one by one, see `GatherBuffer`, if the
            #: engine can gather.
            members["requests"] = Out(stream.Signature(GatherRequest()))
            members["gathered"] = In(stream.Signature(config.word_bits))
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Run one layer at a time, held in a register that all parts read."""
        m = Module()
        config = self._config
        job = Signal(TapCommand(config))
        start = Signal()
        half = Signal()
        m.d.comb += [self.start.eq(start), self.job.eq(job), self.half.eq(half)]
        m.submodules.fill = fill = Fill(config)
        m.submodules.taps = taps = TapWalker(config)
        m.submodules.tables = tables = LayerTables(config)
        m.submodules.store = store = OffsetStore(config)
        walkers: list[Any] = [taps]
        strips = StripWalker(config) if config.strip else None
        if strips is not None:
            m.submodules.strips = strips
            walkers.append(strips)
        connect(m, flipped(self.i), fill.i)
        connect(m, fill.token, flipped(self.token))
        connect(m, flipped(self.offset_command), store.command)
        connect(m, flipped(self.offsets), store.i)
        m.d.comb += [self.open.eq(fill.open), self.computed.eq(store.computed)]

        # A layer is taken, walked, and drained.
        done = Signal()
        drained = Signal()
        # Parameters are read until the last result is scaled.
        drain = self.LATENCY + LaneCell.latency(config)
        left = Signal(range(drain + 1))
        m.d.comb += [
            self.command.ready.eq(~self.busy),
            done.eq(taps.done | (strips.done if strips is not None else 0)),
            self.release.eq(drained & self._has_weights(job)),
        ]
        m.d.sync += [start.eq(self.command.valid & ~self.busy), drained.eq(left == 1)]
        with m.If(~self.busy & self.command.valid):
            m.d.sync += [job.eq(self.command.payload), self.busy.eq(1)]
        with m.If(done):
            m.d.sync += left.eq(drain)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(drained):
            m.d.sync += [self.busy.eq(0), half.eq(half ^ self._has_weights(job))]

        prepared = Signal()
        waits: Any = Const(0, 2)
        m.d.sync += prepared.eq(tables.ready & (self.loaded | ~self._has_weights(job)) & ~start)
        m.d.comb += [fill.start.eq(start), fill.job.eq(job.fill), tables.start.eq(start), tables.job.eq(job)]
        for walker in walkers:
            m.d.comb += [
                walker.start.eq(start & (job.fill.strip == (walker is not taps))),
                walker.job.eq(job),
                walker.filled.eq(fill.filled),
                walker.prepared.eq(prepared),
                walker.room.eq(self.room),
            ]
            waits = waits | walker.waits
        m.d.sync += self.waits.eq(Cat(waits, self.busy & ~self.loaded & self._has_weights(job)))
        m.d.comb += fill.freed.eq(self._freed(m, start, job, taps, strips))

        begins = taps.o.valid & taps.o.first
        if strips is not None:
            begins = begins | (strips.o.valid & strips.o.last)
        m.d.comb += self.begins.eq(begins)
        addresses, points = self._coordinates(m, job, taps.o, tables, store)
        m.d.comb += [
            taps.pixel.eq(store.pixel),
            store.claim.eq(taps.claim),
            store.entries.eq(job.entries),
            store.release.eq(
                delay(
                    m,
                    "released",
                    taps.o.valid & taps.o.pixel_ends & (job.offsets != Offsets.NONE),
                    _ENTRY,
                )
            ),
        ]
        bank_words = self._banks(m, fill, strips, addresses)
        self._control(m, job, half, taps.o, strips.o if strips is not None else None)
        if config.gather_words:
            self._gather(m, job, taps.o, store, points, bank_words)
        else:
            for t in range(config.taps):
                m.d.comb += [self.points[t][g].eq(points[t][g]) for g in range(config.generators)]
                m.d.comb += [self.words[t][n].eq(bank_words[t][n]) for n in range(4)]
        return m

    def _freed(self, m: Module, start: Signal, job: Any, taps: TapWalker, strips: StripWalker | None) -> Any:
        """Return the first row that is still needed, of which no word is in flight from the banks."""
        freed = delay(m, "freed", taps.o.free_row, self.LATENCY, reset=False)
        if strips is not None:
            strip_freed = delay(m, "strip_freed", strips.row, self.LATENCY, reset=False)
            freed = Mux(job.fill.strip, strip_freed, freed)
        # The previous layer's rows have passed the delay when this count is over.
        late = TapWalker.LATENCY + self.LATENCY
        running = Signal(range(late + 1))
        with m.If(start):
            m.d.sync += running.eq(late)
        with m.Elif(running != 0):
            m.d.sync += running.eq(running - 1)
        return Mux(running == 0, freed, 0)

    def _banks(
        self, m: Module, fill: Fill, strips: StripWalker | None, addresses: list[list[Any]]
    ) -> list[list[Signal]]:
        """Make the banks, a copy for each tap, in slices for each generator; returns the words read."""
        config = self._config
        copies, slices = config.taps, config.generators
        slice_bits = config.word_bits // slices
        m.submodules.banks = banks = BankedMemory(
            banks=4 * copies * slices,
            depth=config.bank_words,
            lanes=1,
            lane_width=slice_bits,
            ram_style=config.memory,
            read_latency=_BANK,
        )
        bank_words = [
            [Signal(config.word_bits, name=f"words_{t}_{n}") for n in range(4)] for t in range(copies)
        ]
        if strips is not None:
            strip_read = delay(m, "strip_valid", strips.o.valid, _READ - 1)
            strip_addresses = delay(m, "strip", strips.o.addresses, _READ - 1, reset=False)
        for t in range(copies):
            for g in range(slices):
                for bank in range(4):
                    port, write = (
                        banks.read[(4 * t + bank) * slices + g],
                        banks.write[(4 * t + bank) * slices + g],
                    )
                    address = Signal(
                        range(config.bank_words), name=f"address_{t}_{g}_{bank}", reset_less=True
                    )
                    chosen = addresses[t][g][bank]
                    if strips is not None and t == 0:
                        chosen = Mux(strip_read, strip_addresses[bank], chosen)
                    m.d.sync += address.eq(chosen)
                    m.d.comb += [
                        port.en.eq(1),
                        port.addr.eq(address),
                        bank_words[t][bank].word_select(g, slice_bits).eq(port.data),
                        write.en.eq(fill.enable[bank]),
                        write.addr.eq(fill.address),
                        write.data.eq(fill.word.word_select(g, slice_bits)),
                    ]
        return bank_words

    @staticmethod
    def _has_weights(job: Any) -> Any:
        """Return whether a layer has weights: samples that leave have none, unless offsets are computed."""
        return ~job.samples | job.dot

    def _gather(self, m: Module, job: Any, step: Any, store: Any, points: Any, bank_words: Any) -> None:
        """Take the words of missed taps from the gather buffer, which holds them in the order of
        neighbours.
        """
        config = self._config
        m.submodules.gather = gather = GatherBuffer(config)
        connect(m, gather.requests, flipped(self.requests))
        connect(m, flipped(self.gathered), gather.i)
        m.d.comb += [
            gather.missed.eq(store.missed),
            gather.step.eq(store.step),
            store.full.eq(gather.full),
            store.complete.eq(gather.complete),
        ]
        place = Signal.like(store.place)
        after = Signal.like(store.place)
        word = delay(m, "gather_word", step.word, _PLACE, reset=False)
        ends = step.valid & step.pixel_ends & (job.offsets != Offsets.NONE)
        m.d.sync += [
            place.eq(store.place + word),
            after.eq(store.place + Mux(store.misses.any(), job.fill.words, 0)),
        ]
        m.d.comb += gather.place.eq(delay(m, "gather_place", place, _READ - _PLACE - 1, reset=False))
        # After the last step of a pixel all its missed neighbours have been read.
        after = delay(m, "gather_after", after, self.LATENCY - _PLACE - 1, reset=False)
        with m.If(delay(m, "gather_ends", ends, self.LATENCY)):
            m.d.sync += gather.released.eq(after)
        free = Signal()
        m.d.sync += free.eq(job.offsets == Offsets.FREE)
        for t in range(config.taps):
            missed = delay(m, f"missed_{t}", store.misses[t] & free, self.LATENCY - _PLACE)
            for n in range(4):
                m.d.comb += self.words[t][n].eq(Mux(missed, gather.o[t][n], bank_words[t][n]))
            for g in range(config.generators):
                point, given = self.points[t][g], points[t][g]
                m.d.comb += [
                    point.eq(given),
                    point.odd_row.eq(given.odd_row & ~missed),
                    point.odd_column.eq(given.odd_column & ~missed),
                ]

    def _coordinates(
        self, m: Module, job: Any, step: Any, tables: Any, store: Any
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Join steps with offsets; returns the addresses and the points of each tap and slice."""
        config = self._config
        square = Signal()
        free = Signal()
        m.d.sync += [square.eq(job.offsets == Offsets.SQUARE), free.eq(job.offsets == Offsets.FREE)]
        m.d.comb += [tables.step.eq(step.step), tables.word.eq(step.word)]
        step_1 = delay(m, "step", step.step, 1, reset=False)
        for g in range(config.generators):
            entry = Signal(range(config.offset_entries), name=f"entry_{g}", reset_less=True)
            m.d.sync += entry.eq(Mux(free, tables.entries[g] + step_1, 0))
            m.d.comb += store.entry[g].eq(entry)
        shared = {
            name: delay(m, f"place_{name}", step[name], _PLACE, reset=False)
            for name in ("y", "x", "word", "free_row", "free_slot")
        }
        addresses, points = [], []
        for t in range(config.taps):
            tap = delay(m, f"tap_{t}", tables.taps[t], _PLACE - 1, reset=False)
            row, point_row = [], []
            for g in range(config.generators):
                m.submodules[f"coordinates_{t}_{g}"] = coordinates = Coordinates(config)
                m.d.comb += [
                    coordinates.job.eq(job),
                    coordinates.offset.eq(store.o[g][0 if config.taps == 1 else Mux(square, 0, t)]),
                    coordinates.square.eq(square),
                    coordinates.free.eq(free),
                    coordinates.i.tap.eq(tap),
                    *(coordinates.i[name].eq(value) for name, value in shared.items()),
                ]
                row.append(coordinates.addresses)
                point_row.append(delay(m, f"point_{t}_{g}", coordinates.point, 1 + _BANK))
            addresses.append(row)
            points.append(point_row)
        return addresses, points

    def _control(self, m: Module, job: Any, half: Signal, step: Any, strip: Any) -> None:
        """Drive the control of lane cells, for a step of taps or of a strip."""
        control = self.control
        fields = {name: step[name] for name in ("valid", "first", "last", "word", "weight", "digit")}
        if strip is not None:
            fields["valid"] = step.valid | strip.valid
            fields["first"] = step.first | strip.valid
            fields["last"] = Mux(strip.valid, strip.last, step.last)
            fields["word"] = Mux(strip.valid, strip.word, step.word)
        later = {}
        for name, value in fields.items():
            bits = Signal(len(value), name=f"control_{name}")
            m.d.comb += bits.eq(value)
            later[name] = delay(m, f"{name}_read", bits, _READ, reset=name == "valid")
        m.d.comb += [
            self.read.weight.eq(later["weight"]),
            self.read.word.eq(later["word"]),
            self.read.half.eq(half),
            *(
                control[name].eq(delay(m, f"{name}_bank", later[name], _BANK, reset=name == "valid"))
                for name in ("valid", "first", "last", "digit")
            ),
            control.masked.eq(job.masked),
            control.samples.eq(job.samples),
            control.plain.eq(job.samples & (job.offsets == Offsets.NONE)),
            control.settings.eq(job.settings),
        ]
        if strip is not None:
            m.d.comb += [
                control.strip.eq(job.fill.strip),
                control.window.eq(delay(m, "window", strip.point, self.LATENCY, reset=False)),
            ]
