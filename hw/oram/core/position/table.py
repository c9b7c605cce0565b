"""One of the two tables of the position map: the bucket that an operation works on."""

from __future__ import annotations

import functools
import operator
from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arbiter import lowest
from hw.lib.delay import delay
from hw.lib.memory import uninitialised
from hw.oram.config import BUCKET_BITMAP_BYTES, OramConfig
from hw.oram.core.layouts import bucket_layout, bucket_write_layout, entry_layout
from hw.oram.core.position.lookahead import place_bits


class Table(wiring.Component):
    """Holds one bucket, looks a tag up in it, changes an entry, and keeps the buckets of recent operations.

    Behaviour
    ---------
    An operation is loaded in cycle 0, compared in 1, decided in 2, and its bucket changed at the end of 3; in
    cycle `TURN` the bucket goes out and into the log, and the next operation may be loaded. ``recent`` must
    have been steady for `RECENT` cycles at ``load``, the first of them no earlier than the cycle after the
    ``load`` before.
    """

    TURN: ClassVar = 4
    RECENT: ClassVar = 2

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        place = unsigned(place_bits(config))
        super().__init__(
            {
                #: ``clear``, ``clearing``: starts the walk that writes every bucket empty, in order; it goes
                #: on until ``clearing`` falls. Only between operations.
                "clear": In(1),
                "clearing": Out(1),
                "ready": Out(1),  #: The last operation's bucket is written: the next may be loaded.
                #: Where among the recent operations the newest lies that had the next operation's bucket.
                "recent": In(place),
                #: The next operation begins; ``number``, ``place``, ``same``, ``logged`` and ``read`` come
                #: beside it.
                "load": In(1),
                #: ``number``, ``place``: its bucket, and where it lies itself among the recent.
                "number": In(config.bucket_bits),
                "place": In(place),
                #: ``same``, ``logged``: the operation before had the same bucket; an earlier one of those in
                #: the log had.
                "same": In(1),
                "logged": In(1),
                #: The bucket as it was read from HBM; counts when neither had.
                "read": In(bucket_layout(config)),
                #: From the cycle after ``load`` on: the tag that is looked up, and fresh records.
                "entry": In(entry_layout(config)),
                #: ``hit``, ``found``: two cycles after ``load``: the tag is there. Three cycles after it: the
                #: entry's records, else zeros.
                "hit": Out(1),
                "found": Out(entry_layout(config)["record"].shape),
                "used": Out(range(config.bucket_entries + 1)),  #: Two cycles after ``load``: entries in use.
                #: ``renew``, ``remove``, ``insert``: two cycles after ``load``, else 0: the entry that was
                #: hit gets the fresh records; it is freed; the lowest free one, if there is one, becomes the
                #: tag's.
                "renew": In(1),
                "remove": In(1),
                "insert": In(1),
                #: From four cycles after ``load`` on, if anything changes.
                "write": Out(stream.Signature(bucket_write_layout(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """The bucket stays where it is for the next operation of the same; others take it from the log."""
        m = Module()
        config = self._config
        entry, count = entry_layout(config), config.bucket_entries
        used = Signal(count, name="used_now", reset_less=True)
        entries = [Signal(entry, name=f"entry_{n}", reset_less=True) for n in range(count)]
        done = delay(m, "load_before", self.load, Table.TURN)

        m.submodules.log = log = uninitialised(
            width=count * (1 + entry.size), depth=1 << place_bits(config), ram_style="block"
        )
        place = Signal(place_bits(config), reset_less=True)
        fetch, keep = log.read_port(), log.write_port()
        logged = Signal(len(fetch.data), reset_less=True)
        m.d.sync += logged.eq(fetch.data)
        m.d.comb += [
            fetch.addr.eq(self.recent),
            keep.en.eq(done),
            keep.addr.eq(place),
            keep.data.eq(Cat(used, *map(Value.cast, entries))),
        ]

        # Looking up; the log's bits are those of the bucket, without what is between them.
        hits, free = (Signal(count, name=name, reset_less=True) for name in ("hits", "free"))
        m.d.sync += [
            hits.eq(Cat(used[n] & (entries[n].tag == self.entry.tag) for n in range(count))),
            free.eq(lowest(~used)),
            self.used.eq(_count(used)),
        ]
        chosen = [Mux(hit, Value.cast(old.record), 0) for hit, old in zip(hits, entries, strict=True)]
        m.d.sync += Value.cast(self.found).eq(functools.reduce(operator.or_, chosen))
        m.d.comb += self.hit.eq(hits.any())

        # Changing.
        written, toggled = Signal(count), Signal(count)
        changed = Signal()
        m.d.sync += [
            written.eq((hits & self.renew.replicate(count)) | (free & self.insert.replicate(count))),
            toggled.eq((hits & self.remove.replicate(count)) | (free & self.insert.replicate(count))),
            changed.eq((self.hit & (self.renew | self.remove)) | self.insert),
        ]
        m.d.sync += used.eq(used ^ toggled)
        for n in range(count):
            with m.If(written[n]):
                m.d.sync += entries[n].eq(self.entry)
        with m.If(self.load):
            m.d.sync += place.eq(self.place)
            with m.If(~self.same):
                m.d.sync += used.eq(Mux(self.logged, logged[:count], self.read.used))
                for n in range(count):
                    was = logged[count + n * entry.size :][: entry.size]
                    m.d.sync += entries[n].eq(Mux(self.logged, was, self.read.entries[n].entry))
        self._write(m, used, entries, written, toggled, changed)
        return m

    def _write(
        self, m: Module, used: Signal, entries: list[Any], written: Signal, toggled: Signal, changed: Signal
    ) -> None:
        """Offer the bucket, which stays as it is until it is taken."""
        config = self._config
        write = self.write.payload
        number = Signal(config.bucket_bits, reset_less=True)
        entry_strobe = Signal(config.bucket_entries, reset_less=True)
        used_strobe = Signal(reset_less=True)
        m.d.comb += [
            self.ready.eq(~self.clearing & (~self.write.valid | self.write.ready)),
            write.line.eq(number),
            write.data.used.eq(used),
            *(write.data.entries[n].entry.eq(entry) for n, entry in enumerate(entries)),
            write.strobe.eq(
                Cat(
                    used_strobe.replicate(BUCKET_BITMAP_BYTES),
                    *(strobe.replicate(config.entry_bytes) for strobe in entry_strobe),
                )
            ),
        ]
        with m.If(self.load):
            m.d.sync += number.eq(self.number)
        with m.If(self.write.ready):
            m.d.sync += self.write.valid.eq(0)
        with m.If(changed):
            m.d.sync += [
                self.write.valid.eq(1),
                entry_strobe.eq(written),
                used_strobe.eq(toggled.any()),
            ]
        with m.If(self.clearing & self.write.ready):
            m.d.sync += number.eq(number + 1)
            with m.If(number == config.buckets - 1):
                m.d.sync += self.clearing.eq(0)
            with m.Else():
                m.d.sync += self.write.valid.eq(1)
        with m.If(self.clear):
            m.d.sync += [
                self.clearing.eq(1),
                self.write.valid.eq(1),
                number.eq(0),
                used.eq(0),
                entry_strobe.eq(0),
                used_strobe.eq(1),
            ]


def _count(flags: Value) -> Value:
    """Return how many bits are set."""
    half = len(flags) // 2
    return _count(flags[:half]) + _count(flags[half:]) if half else flags
