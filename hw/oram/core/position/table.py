"""One of the two tables of the position map: the bucket of the current operation."""

import functools
import operator
from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.arbiter import lowest
from hw.lib.delay import delay
from hw.oram.config import BUCKET_BITMAP_BYTES, OramConfig
from hw.oram.core.bits import equal_words
from hw.oram.core.layouts import HBM_BEAT_BYTES, bucket_beat_layout, bucket_layout, entry_layout
from hw.oram.core.position.log import BEATS, BucketLog
from hw.oram.core.position.lookahead import place_bits
from hw.oram.core.position.stamps import Stamps, number_bits


class BucketTable(wiring.Component):
    """Holds one bucket, looks a tag up, and changes an entry; its log holds those of recent operations.

    Behaviour
    ---------
    An operation is loaded in cycle 0, compared in 1 and decided in 2; its bucket changes at the end of 3. In
    cycle `TURN` the bucket is logged, and the next operation may be loaded. ``recent`` must be stable for
    `RECENT` cycles up to ``load``, all of them after ``leave``.
    """

    TURN: ClassVar = 4
    RECENT: ClassVar = BucketLog.RECALL

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        place = unsigned(place_bits(config))
        super().__init__(
            {
                "ready": Out(1),  #: The next operation may be loaded.
                #: Place in the log of the next operation's bucket.
                "recent": In(place),
                #: The next operation begins, with ``number``, ``place``, ``same``, ``logged`` and ``read``.
                "load": In(1),
                #: ``number``, ``place``: its bucket, and its own place in the log.
                "number": In(config.bucket_bits),
                "place": In(place),
                #: ``same``, ``logged``: the previous operation has the same bucket; the log has it.
                "same": In(1),
                "logged": In(1),
                #: The bucket read from HBM; used when neither had it.
                "read": In(bucket_layout(config)),
                #: From the cycle after ``load`` on: the tag to look up, and fresh records.
                "entry": In(entry_layout(config)),
                "stamp": In(number_bits(config)),  #: With ``entry``: the operation's number.
                #: ``hit``: two cycles after ``load``: the tag was found. ``found``: a cycle later: the
                #: entry's records, else zeros. ``stamped``, ``found_stamp``: with them: its stamp, as in
                #: `Stamps`.
                "hit": Out(1),
                "found": Out(entry_layout(config)["record"].shape),
                "stamped": Out(1),
                "found_stamp": Out(number_bits(config)),
                "used": Out(range(config.bucket_entries + 1)),  #: Entries in use, two cycles after ``load``.
                #: ``renew``, ``remove``, ``insert``: two cycles after ``load``, else 0. They write the fresh
                #: records into the matching entry, free it, or write the tag into the lowest free entry.
                "renew": In(1),
                "remove": In(1),
                "insert": In(1),
                #: ``leave``, ``leaving``, ``discard``, ``beat``: as in `BucketLog`.
                "leave": In(1),
                "leaving": In(place),
                "discard": In(1),
                "beat": Out(stream.Signature(bucket_beat_layout(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """The next operation on the same bucket finds it here; others load it from the log or from HBM."""
        m = Module()
        config = self._config
        entry, count = entry_layout(config), config.bucket_entries
        used = Signal(count, name="used_now", reset_less=True)
        entries = [Signal(entry, name=f"entry_{n}", reset_less=True) for n in range(count)]
        m.submodules.log = log = BucketLog(config)
        m.submodules.stamps = stamps = Stamps(config)

        # Lookup.
        hits, free = (Signal(count, name=name, reset_less=True) for name in ("hits", "free"))
        m.d.sync += [
            hits.eq(equal_words(m, "equal", [entry.tag for entry in entries], self.entry.tag, used)),
            free.eq(lowest(~used)),
            self.used.eq(_count(used)),
        ]
        chosen = [Mux(hit, Value.cast(old.record), 0) for hit, old in zip(hits, entries, strict=True)]
        m.d.sync += Value.cast(self.found).eq(functools.reduce(operator.or_, chosen))
        m.d.comb += self.hit.eq(hits.any())

        # Change.
        written = Signal(count)
        toggled = Signal(count)
        m.d.sync += [
            written.eq((hits & self.renew.replicate(count)) | (free & self.insert.replicate(count))),
            toggled.eq((hits & self.remove.replicate(count)) | (free & self.insert.replicate(count))),
            used.eq(used ^ toggled),
        ]
        for n in range(count):
            with m.If(written[n]):
                m.d.sync += entries[n].eq(self.entry)
        with m.If(self.load & ~self.same):
            m.d.sync += used.eq(Mux(self.logged, log.recalled.used, self.read.used))
            for n in range(count):
                m.d.sync += entries[n].eq(
                    Mux(self.logged, log.recalled.entries[n], self.read.entries[n].entry)
                )
        m.d.comb += [
            stamps.load.eq(self.load & ~self.same),
            stamps.recalled.eq(log.recalled.stamps),
            stamps.recalled.known.eq(log.recalled.stamps.known & self.logged.replicate(count)),
            stamps.check.eq(delay(m, "loaded", self.load, Stamps.CHECK)),
            stamps.number.eq(self.stamp),
            stamps.written.eq(written),
            stamps.hits.eq(hits),
            log.kept.stamps.eq(stamps.kept),
            self.stamped.eq(stamps.known),
            self.found_stamp.eq(stamps.found),
        ]
        self._log(m, log, used, entries, written, toggled)
        return m

    def _log(
        self, m: Module, log: BucketLog, used: Signal, entries: list[Any], written: Signal, toggled: Signal
    ) -> None:
        """Keep the bucket, with the beats that its change touched."""
        connect(m, log.beat, flipped(self.beat))
        place = Signal.like(self.place, reset_less=True)
        number = Signal.like(self.number, reset_less=True)
        with m.If(self.load):
            m.d.sync += [place.eq(self.place), number.eq(self.number)]
        m.d.sync += log.changed.eq(
            Cat(
                Cat(written[n] for n in range(len(written)) if beat in self._beats(n)).any()
                | (toggled.any() if beat == 0 else 0)
                for beat in range(BEATS)
            )
        )
        m.d.comb += [
            self.ready.eq(log.ready),
            log.recall.eq(self.recent),
            log.load.eq(self.load),
            log.takes.eq(self.logged),
            log.keep.eq(delay(m, "load_before", self.load, BucketTable.TURN)),
            log.place.eq(place),
            log.kept.used.eq(used),
            log.kept.number.eq(number),
            log.leave.eq(self.leave),
            log.leaving.eq(self.leaving),
            log.discard.eq(self.discard),
            *(log.kept.entries[n].eq(entry) for n, entry in enumerate(entries)),
        ]

    def _beats(self, entry: int) -> range:
        """Return the beats that an entry lies in."""
        size = self._config.entry_bytes
        first = BUCKET_BITMAP_BYTES + entry * size
        return range(first // HBM_BEAT_BYTES, (first + size - 1) // HBM_BEAT_BYTES + 1)


def _count(flags: Value) -> Value:
    """Count the set bits."""
    half = len(flags) // 2
    return _count(flags[:half]) + _count(flags[half:]) if half else flags
