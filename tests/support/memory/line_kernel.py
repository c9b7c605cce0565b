"""A kernel that reads and writes random lines at a fixed interval, as the oblivious map does, and counts how
long they take.

An operation reads a bucket of 128 bytes from each of two tables, a record with its header, and another
header.  Later it writes a beat or two into one of the buckets, and four beats into the two records.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Signal
from amaranth.lib import data, wiring

from hw.lib import axi
from hw.lib.arguments import Argument, ArgumentKind, ArgumentTable
from hw.lib.fifo import Fifo
from hw.lib.kernel import BodySignature, Kernel
from hw.lib.place import CellPlacer
from hw.oram.config import OramConfig
from hw.oram.movers.hbm.line_reader import LineReader
from hw.oram.movers.hbm.line_writer import LineWriter
from hw.oram.movers.hbm.lines import LineRead, Lines
from tests.support.memory.mask_kernel import MaskKernel

NAME = "loomwork_lines"
#: Cycles of a class of the histograms, and how many there are; the last has all that waited longer.
STEP, CLASSES = 16, 32
#: Timed reads: the second bucket of an operation is like the first.
TIMED = ("bucket", "record", "record_head", "header")
_DEADLINE = OramConfig().record_sizes.settle_cycles
#: Cycles from the beginning of an operation to its writes.
_WRITES = 400
_BUCKET = LineRead(name="bucket", length=128, word_bytes=128)
_RECORD = LineRead(name="record", length=256, word_bytes=64, head_bytes=32)
_HEADER = LineRead(name="header", length=32, word_bytes=32)


def line_table(ports: int) -> ArgumentTable:
    """Return the arguments: operations, their interval, and where the lines of each port lie."""
    names = [f"{kind}_{n}" for kind in TIMED for n in range(CLASSES)]
    names += [f"{kind}_longest" for kind in TIMED] + ["late", "cycles"]
    return ArgumentTable(
        (
            Argument(name="operations", kind=ArgumentKind.SCALAR, doc="Operations."),
            Argument(name="interval", kind=ArgumentKind.SCALAR, doc="Cycles between them."),
            *(
                Argument(name=f"lines{n}", kind=ArgumentKind.POINTER, doc="Lines.", port=f"gmem{n}")
                for n in range(ports)
            ),
            *(Argument(name=name, kind=ArgumentKind.COUNTER, doc="Count.") for name in names),
        )
    )


class LineBody(wiring.Component):
    """The body; half of the ports have buckets, half records."""

    def __init__(self, table: ArgumentTable, placer: CellPlacer) -> None:
        self._placer = placer
        self._ports = len(table.ports)
        super().__init__(BodySignature(table, data_width=256))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        quarter = self._ports // 4
        buckets = Lines(ports=quarter, port_bytes=32, line_bytes=128, line_bits=16)
        records = Lines(ports=2 * quarter, port_bytes=32, line_bytes=256, line_bits=17, swapped=True)
        readers, writers = [], []
        shapes = [
            ("low", buckets, (_BUCKET,)),
            ("high", buckets, (_BUCKET,)),
            ("record", records, (_RECORD, _HEADER)),
        ]
        first = 0
        for name, lines, reads in shapes:
            cell = f"{reads[0].name}_port"
            reader = LineReader(lines, reads, outstanding=256, cell=f"{cell}_read", placer=self._placer)
            writer = LineWriter(lines, deadline=_DEADLINE, cell=f"{cell}_write", placer=self._placer)
            m.submodules[f"{name}_reader"], m.submodules[f"{name}_writer"] = reader, writer
            readers.append(reader)
            writers.append(writer)
            for p in range(lines.ports):
                port = getattr(self, f"gmem{first + p}")
                axi.connect(m, read=reader.axi[p], write=writer.axi[p], port=port)
                base = self.args[f"lines{first + p}"]
                m.d.comb += [reader.base[p].eq(base), writer.base[p].eq(base)]
            first += lines.ports

        fire, now, random = self._clock(m)
        low, high, record = readers
        chosen = [random.word_select(n, 16) for n in range(5)]
        requests = [
            (low.bucket_request, low.bucket, "bucket", 1, chosen[0]),
            (high.bucket_request, high.bucket, None, 1, chosen[1]),
            (record.record_request, record.record, "record", 4, Cat(chosen[2], random[80])),
            (record.header_request, record.header, "header", 1, Cat(chosen[3], random[81])),
        ]
        arrived = []
        for n, (request, words, timed, count, line) in enumerate(requests):
            asked = Fifo(len(line), depth=512)
            m.submodules[f"asked_{n}"] = asked
            wiring.connect(m, asked.o, request)
            m.d.comb += [asked.i.payload.eq(line), asked.i.valid.eq(fire), words.ready.eq(1)]
            # The writers' command once the line has arrived.
            arrived.append(self._stamp(m, f"{n}", fire, now, line, words, count, timed))
        self._stamp(m, "head", fire, now, Const(0, 1), record.record_head, 1, "record_head")
        m.d.comb += record.record_head.ready.eq(1)

        which = random[82]
        low_writer, high_writer, record_writer = writers
        for writer, came, n in ((low_writer, arrived[0], 0), (high_writer, arrived[1], 1)):
            self._write(m, f"bucket_{n}", now, writer, [(came, (0, 3)[: 1 + n], which == n)])
        self._write(m, "record", now, record_writer, [(arrived[2], (0,), 1), (arrived[3], (0, 2, 5), 1)])
        late = Cat(writer.late | writer.error for writer in writers) | Cat(r.error for r in readers)
        m.d.comb += self.counters.late.eq(late.any())
        return m

    def _clock(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """Return when an operation begins, the cycle, and random bits; and end well after the last."""
        fire = Signal()
        now = Signal(32)
        random = Signal(128, init=0x9E3779B97F4A7C15F39CC0605CEDC835)
        running = Signal()
        left = Signal(32)
        wait = Signal(32)
        after = Signal(12)
        m.d.sync += [now.eq(now + 1), self.done.eq(0)]
        # xorshift128 with shifts of 23, 17 and 26, whole words a cycle.
        m.d.sync += random.eq(Cat(random[64:], _xorshift(m, random[:64], random[64:])))
        m.d.comb += fire.eq(running & (wait == 0) & (left != 0))
        with m.If(self.start):
            m.d.sync += [running.eq(1), left.eq(self.args.operations), wait.eq(0), after.eq(0)]
        with m.Elif(running):
            m.d.sync += [wait.eq(wait - 1), self.counters.cycles.eq(self.counters.cycles + 1)]
            with m.If(wait == 0):
                m.d.sync += wait.eq(self.args.interval - 1)
            with m.If(fire):
                m.d.sync += left.eq(left - 1)
            with m.If(left == 0):
                m.d.sync += after.eq(after + 1)
                with m.If(after.all()):
                    m.d.sync += [running.eq(0), self.done.eq(1)]
        return fire, now, random

    def _stamp(
        self, m: Module, name: str, fire: Any, now: Any, line: Any, words: Any, count: int, timed: str | None
    ) -> tuple[Signal, Any, Any]:
        """Time a stream from the request to the last word; return the time of that word, its line, and the
        time of the writes that follow.
        """
        stamps = Fifo(data.StructLayout({"cycle": 32, "line": len(line)}), depth=512, ram_style="distributed")
        m.submodules[f"stamps_{name}"] = stamps
        place = Signal(range(max(2, count)))
        ends = Signal()
        moved = words.valid & words.ready
        m.d.comb += [
            stamps.i.payload.cycle.eq(now),
            stamps.i.payload.line.eq(line),
            stamps.i.valid.eq(fire),
            ends.eq(moved & (place == count - 1)),
            stamps.o.ready.eq(ends),
        ]
        with m.If(moved):
            m.d.sync += place.eq(place + 1)
            with m.If(ends):
                m.d.sync += place.eq(0)
        if timed is not None:
            waited = (now - stamps.o.payload.cycle)[:32]
            longest = self.counters[f"{timed}_longest"]
            kinds = Array(self.counters[f"{timed}_{n}"] for n in range(CLASSES))
            at = Signal(range(CLASSES))
            m.d.comb += at.eq(CLASSES - 1)
            with m.If(waited < STEP * CLASSES):
                m.d.comb += at.eq(waited // STEP)
            with m.If(ends):
                m.d.sync += kinds[at].eq(kinds[at] + 1)
                with m.If(waited > longest):
                    m.d.sync += longest.eq(waited)
        return ends, stamps.o.payload.line, (stamps.o.payload.cycle + _WRITES)[:32]

    def _write(
        self, m: Module, name: str, now: Any, writer: Any, sources: list[tuple[Any, tuple[int, ...], Any]]
    ) -> None:
        """Write the given beats of lines that came, of each source in turn, when they are due."""
        beats = data.StructLayout({"line": len(writer.i.payload.line), "due": 32})
        queues = []
        for n, ((ends, line, due), places, wanted) in enumerate(sources):
            queue = Fifo(beats, depth=512, ram_style="distributed")
            m.submodules[f"{name}_writes_{n}"] = queue
            m.d.comb += [
                queue.i.payload.line.eq(line),
                queue.i.payload.due.eq(due),
                queue.i.valid.eq(ends & wanted),
            ]
            queues.append((queue, places))
        step = Signal(2)
        turn = Signal(range(max(2, len(queues))))
        for n, (queue, places) in enumerate(queues):
            choices = Array(Const(place, 3) for place in (*places, 0, 0, 0)[:4])
            with m.If(turn == n):
                m.d.comb += [
                    writer.i.valid.eq(queue.o.valid & ~(now - queue.o.payload.due)[31]),
                    writer.i.payload.line.eq(queue.o.payload.line),
                    writer.i.payload.beat.eq(choices[step]),
                    writer.i.payload.strobe.eq(0xFF),
                    queue.o.ready.eq(writer.i.valid & writer.i.ready & (step == len(places) - 1)),
                ]
                with m.If(writer.i.valid & writer.i.ready):
                    m.d.sync += step.eq(step + 1)
                    with m.If(queue.o.ready):
                        m.d.sync += [step.eq(0), turn.eq((n + 1) % len(queues))]


def _xorshift(m: Module, old: Any, kept: Any) -> Any:
    """Return the next word of xorshift128+ without its sum (Vigna, 2014)."""
    first = Signal(64)
    second = Signal(64)
    m.d.comb += first.eq(old ^ (old << 23))
    m.d.comb += second.eq(first ^ kept ^ (first >> 17) ^ (kept >> 26))
    return second


def line_kernel(table: ArgumentTable) -> MaskKernel:
    """Generate the kernel."""
    from hw.lib.convert import to_verilog

    placer = CellPlacer()
    text = to_verilog(Kernel(NAME, table, LineBody(table, placer)), name=NAME)
    return MaskKernel(top_name=NAME, verilog=f"{text}\n{placer.verilog}", table=table)
