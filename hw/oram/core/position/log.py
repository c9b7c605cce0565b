"""The log of a table: the buckets of recent operations, and their beats that HBM does not have yet."""

from typing import Any, ClassVar

from amaranth.hdl import Array, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.loads import LOADS, copies
from hw.lib.memory import RamStyle, ports, uninitialised
from hw.oram.config import BUCKET_BYTES, OramConfig
from hw.oram.core.layouts import HBM_BEAT_BYTES, bucket_beat_layout, bucket_layout, entry_layout
from hw.oram.core.position.lookahead import place_bits
from hw.oram.core.position.stamps import stamps_layout

#: Beats of a bucket in HBM.
BEATS = BUCKET_BYTES // HBM_BEAT_BYTES
#: Beats in the queue to HBM, and the most with which an operation may begin: it and its predecessor add
#: eight.
_QUEUE, _ROOMY = 16, 7
#: Most places in block RAM: its words at the greatest width. An UltraRAM has 4,096 words.
BLOCK_PLACES = 512


def kept_layout(config: OramConfig) -> data.StructLayout:
    """Return a bucket in the log: without the gaps between entries, with its number and stamps."""
    return data.StructLayout(
        {
            "used": config.bucket_entries,
            "entries": data.ArrayLayout(entry_layout(config), config.bucket_entries),
            "number": config.bucket_bits,
            "stamps": stamps_layout(config),
        }
    )


class BucketLog(wiring.Component):
    """Keeps the bucket of each operation, recalls it for a later one, and writes it to HBM when it leaves.

    Behaviour
    ---------
    A place has a mark for each beat that changed and is not in HBM. An operation that recalls a place takes
    its marks over. Marked beats leave once, when ``leave`` names their place.

    Cycles are those of an operation, which begins in cycle 0 with ``load``: the old marks are read in 1,
    those of the leaving place in 2. Its bucket enters the writer at the end of 3. The operation's own bucket
    is kept in cycle 4, which may be the next one's cycle 0.
    """

    #: Minimum cycles between pulses of ``leave``.
    SPACING: ClassVar = BEATS
    #: Cycles for which ``recall`` must be stable up to its use, all of them after ``leave``.
    RECALL: ClassVar = 2
    #: Cycles from ``leave`` to the last beat in the queue.
    LATENCY: ClassVar = 2 + BEATS

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        place = unsigned(place_bits(config))
        super().__init__(
            {
                #: Place of the next operation's bucket, and the bucket there.
                "recall": In(place),
                "recalled": Out(kept_layout(config)),
                #: Pulses: an operation begins; with ``takes`` its bucket is the recalled one.
                "load": In(1),
                "takes": In(1),
                #: Pulse: the operation's bucket, the beats that it changed, and its place.
                "keep": In(1),
                "kept": In(kept_layout(config)),
                "changed": In(BEATS),
                "place": In(place),
                #: Pulse, in cycle 1: the beats of ``leaving`` leave; stable for two cycles. With ``discard``
                #: only their marks do.
                "leave": In(1),
                "leaving": In(place),
                "discard": In(1),
                "beat": Out(stream.Signature(bucket_beat_layout(config))),
                "ready": Out(1),  #: The queue has room for the beats of an operation.
            }
        )
        self.queue = Fifo(bucket_beat_layout(config), depth=_QUEUE)

    def elaborate(self, platform: Any) -> Module:
        """A RAM of buckets, one of marks, and a writer of beats."""
        m = Module()
        config = self._config
        places = config.position.log
        style: RamStyle = "block" if places <= BLOCK_PLACES else "ultra"
        m.submodules.buckets = buckets = uninitialised(
            width=kept_layout(config).size, depth=places, ram_style=style
        )
        store, fetch = ports(buckets)
        recalled = Signal(kept_layout(config).size, reset_less=True)
        m.d.sync += recalled.eq(fetch.data)
        m.d.comb += [
            fetch.addr.eq(Mux(self.leave, self.leaving, self.recall)),
            store.en.eq(self.keep),
            store.addr.eq(self.place),
            store.data.eq(Value.cast(self.kept)),
            Value.cast(self.recalled).eq(recalled),
        ]

        m.submodules.marks = marks = uninitialised(width=BEATS, depth=places, ram_style="distributed")
        mark, look = ports(marks)
        older = Signal(place_bits(config), reset_less=True)
        with m.If(self.load):
            m.d.sync += older.eq(self.recall)
        takes = delay(m, "takes", self.load & self.takes, 1)
        taken = delay(m, "taken", takes, 1)
        leaves = delay(m, "leaves", self.leave, 1)
        left = delay(m, "left", leaves & ~self.discard, 1)
        over = Signal(BEATS, reset_less=True)
        with m.If(self.load):
            m.d.sync += over.eq(0)
        with m.Elif(taken):
            m.d.sync += over.eq(look.data)
        m.d.comb += [
            look.addr.eq(Mux(leaves, self.leaving, older)),
            mark.en.eq(self.keep | takes | leaves),
            mark.addr.eq(Mux(self.keep, self.place, Mux(leaves, self.leaving, older))),
            mark.data.eq(Mux(self.keep, over | self.changed, 0)),
        ]
        self._write(m, left, recalled, look.data)
        return m

    def _write(self, m: Module, left: Value, leaving: Signal, marks: Value) -> None:
        """Queue the marked beats of a bucket, one a cycle."""
        config = self._config
        m.submodules.queue = queue = self.queue
        connect(m, queue.o, flipped(self.beat))
        held = Signal(kept_layout(config), reset_less=True)
        marked = Signal(BEATS)
        m.d.sync += marked.eq(marked >> 1)
        with m.If(left):
            m.d.sync += [Value.cast(held).eq(leaving), marked.eq(marks)]
        turns = copies(Signal(range(BEATS), name="turn", reset_less=True), 8 * HBM_BEAT_BYTES // LOADS)
        m.d.sync += [turn.eq(Mux(left, 0, turns[0] + 1)) for turn in turns]
        bucket = Signal(bucket_layout(config))
        m.d.comb += bucket.used.eq(held.used)
        for n in range(config.bucket_entries):
            m.d.comb += bucket.entries[n].entry.eq(held.entries[n])
        words = [bucket.as_value().word_select(n, 8 * HBM_BEAT_BYTES) for n in range(BEATS)]
        beat = queue.i.payload
        m.d.comb += [
            queue.i.valid.eq(marked[0]),
            beat.line.eq(held.number),
            beat.beat.eq(turns[0]),
            beat.strobe.eq(~0),
        ]
        for at, turn in enumerate(turns):
            part = Array(word[at * LOADS : (at + 1) * LOADS] for word in words)
            m.d.comb += beat.data[at * LOADS : (at + 1) * LOADS].eq(part[turn])
        m.d.sync += self.ready.eq(queue.level <= _ROOMY)
