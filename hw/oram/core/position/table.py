"""One of the two tables of the position map: the bucket of the current operation."""

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


class BucketTable(wiring.Component):
    """Holds one bucket, looks a tag up, changes an entry, and logs the buckets of recent operations.

    Behaviour
    ---------
    An operation is loaded in cycle 0, compared in 1 and decided in 2; its bucket changes at the end of 3. In
    cycle `TURN` the bucket is written and logged, and the next operation may be loaded. ``recent`` must be
    stable for `RECENT` cycles up to ``load``, all of them after the previous ``load``.
    """

    TURN: ClassVar = 4
    RECENT: ClassVar = 2

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        place = unsigned(place_bits(config))
        super().__init__(
            {
                #: ``clear``, ``clearing``: writes every bucket empty, in order, until ``clearing`` falls.
                #: Only between operations.
                "clear": In(1),
                "clearing": Out(1),
                "ready": Out(1),  #: The last operation's bucket is written: the next operation may be loaded.
                #: Place in the log of the newest copy of the next operation's bucket.
                "recent": In(place),
                #: The next operation begins, with ``number``, ``place``, ``same``, ``logged`` and ``read``.
                "load": In(1),
                #: ``number``, ``place``: its bucket, and its own place in the log.
                "number": In(config.bucket_bits),
                "place": In(place),
                #: ``same``, ``logged``: the previous operation, or an earlier one in the log, had the same
                #: bucket.
                "same": In(1),
                "logged": In(1),
                #: The bucket read from HBM; used when neither had it.
                "read": In(bucket_layout(config)),
                #: From the cycle after ``load`` on: the tag to look up, and fresh records.
                "entry": In(entry_layout(config)),
                #: ``hit``: two cycles after ``load``: the tag was found. ``found``: a cycle later: the
                #: entry's records, else zeros.
                "hit": Out(1),
                "found": Out(entry_layout(config)["record"].shape),
                "used": Out(range(config.bucket_entries + 1)),  #: Entries in use, two cycles after ``load``.
                #: ``renew``, ``remove``, ``insert``: two cycles after ``load``, else 0. They write the fresh
                #: records into the matching entry, free it, or write the tag into the lowest free entry.
                "renew": In(1),
                "remove": In(1),
                "insert": In(1),
                #: From four cycles after ``load`` on, if the bucket changed.
                "write": Out(stream.Signature(bucket_write_layout(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """The next operation on the same bucket finds it here; others load it from the log or from HBM."""
        m = Module()
        config = self._config
        entry, count = entry_layout(config), config.bucket_entries
        used = Signal(count, name="used_now", reset_less=True)
        entries = [Signal(entry, name=f"entry_{n}", reset_less=True) for n in range(count)]
        done = delay(m, "load_before", self.load, BucketTable.TURN)

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

        # Lookup; the log stores a bucket's bits without the gaps between entries.
        hits, free = (Signal(count, name=name, reset_less=True) for name in ("hits", "free"))
        m.d.sync += [
            hits.eq(Cat(used[n] & (entries[n].tag == self.entry.tag) for n in range(count))),
            free.eq(lowest(~used)),
            self.used.eq(_count(used)),
        ]
        chosen = [Mux(hit, Value.cast(old.record), 0) for hit, old in zip(hits, entries, strict=True)]
        m.d.sync += Value.cast(self.found).eq(functools.reduce(operator.or_, chosen))
        m.d.comb += self.hit.eq(hits.any())

        # Change.
        written = Signal(count)
        toggled = Signal(count)
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
        """Offer the bucket, stable until it is taken."""
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
    """Count the set bits."""
    half = len(flags) // 2
    return _count(flags[:half]) + _count(flags[half:]) if half else flags
