"""The records in HBM: lists of the pages, and bins."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.oram.config import RECORD_HEADER_BYTES, OramConfig
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS, HBM_BEAT_BYTES, record_layout, seal_layout
from hw.oram.core.stage.writer import record_write_layout
from hw.oram.movers.erase import record_lines
from hw.oram.movers.hbm.line_reader import LineReader
from hw.oram.movers.hbm.line_writer import LineWriter
from hw.oram.movers.hbm.lines import LineRead, Lines

#: Lines in a port's queue that HBM did not take yet.
_REQUESTS = 32
#: Bytes at the front of a record with its page's version, read as its head.
_HEAD_BYTES = 16
#: Versions that wait for the opener.
_VERSIONS = 2


class Records(wiring.Component):
    """Reads and writes records."""

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        index, ports = record_layout(config), config.record_ports
        super().__init__(
            {
                "base": In(ADDRESS_BITS).array(ports),
                #: Records to read whole, in the order of their touches.
                "touch": In(stream.Signature(index)),
                "fresh": In(stream.Signature(index)),  #: Records whose header is read.
                #: For each record of a page: the page and its version, a cycle after their arrival. Bins in
                #: between cause no gap.
                "version": Out(stream.Signature(seal_layout())),
                "record": Out(stream.Signature(BEAT_BITS)),  #: Whole records, in order.
                #: Headers of fresh records, in order.
                "header": Out(stream.Signature(8 * RECORD_HEADER_BYTES)),
                #: ``record_arrived``, ``header_arrived``: pulses: one more is at ``record``, or at
                #: ``header``, whole from three cycles later on.
                "record_arrived": Out(1),
                "header_arrived": Out(1),
                "write": In(stream.Signature(record_write_layout(config))),
                "axi": Out(axi.Signature(data_width=8 * HBM_BEAT_BYTES, addr_width=ADDRESS_BITS)).array(
                    ports
                ),
                #: ``busy``, ``late``, ``error``: as in `LineWriter`; ``error`` also of reads.
                "busy": Out(1),
                "late": Out(1),
                "error": Out(1),
                #: ``erase``, ``erased``: as in `LineWriter`: every record becomes empty, with version 1; its
                #: other bytes become zeros.
                "erase": In(1),
                "erased": Out(1),
            }
        )
        lines = config.issued * config.items
        self.stored = Fifo(BEAT_BITS, depth=lines * config.record_beats, ram_style="ultra")
        self.headers = Fifo(8 * RECORD_HEADER_BYTES, depth=config.issued * config.label_count)
        self.pages = Fifo(index, depth=lines)

    def elaborate(self, platform: Any) -> Module:
        """A reader, queues with room for all requests, and a writer."""
        m = Module()
        config = self._config
        lines = Lines(
            ports=config.record_ports,
            port_bytes=HBM_BEAT_BYTES,
            line_bytes=config.record_bytes,
            line_bits=config.record_index_bits,
            slice_lines=record_lines(config),
            head=1,
            swapped=True,
        )
        whole = LineRead(
            name="record",
            length=config.record_bytes,
            word_bytes=BEAT_BITS // 8,
            head_bytes=_HEAD_BYTES,
        )
        head = LineRead(name="header", length=RECORD_HEADER_BYTES, word_bytes=RECORD_HEADER_BYTES)
        m.submodules.reader = reader = LineReader(
            lines,
            (whole, head),
            outstanding=config.issued * config.items,
            depth=config.record_sizes.read_lines,
            # The rest is under way: HBM takes as many bursts of a port.
            requests=min(config.record_sizes.read_lines, _REQUESTS),
            cell="record_read_port",
            placer=self._placer,
        )
        m.submodules.writer = writer = LineWriter(
            lines,
            deadline=config.record_sizes.settle_cycles,
            depth=config.record_sizes.write_beats,
            cell="record_write_port",
            placer=self._placer,
        )
        for p in range(config.record_ports):
            axi.connect(m, read=reader.axi[p], write=writer.axi[p], port=self.axi[p])
            m.d.comb += [reader.base[p].eq(self.base[p]), writer.base[p].eq(self.base[p])]

        m.submodules.stored, m.submodules.headers = stored, headers = self.stored, self.headers
        connect(m, reader.record, stored.i)
        connect(m, stored.o, flipped(self.record))
        connect(m, reader.header, headers.i)
        connect(m, headers.o, flipped(self.header))
        beat = Signal(range(config.record_beats))
        arrived = stored.i.valid & stored.i.ready
        last = beat == config.record_beats - 1
        with m.If(arrived):
            m.d.sync += beat.eq(beat + 1)
            with m.If(last):
                m.d.sync += beat.eq(0)
        m.d.comb += [
            self.record_arrived.eq(arrived & last),
            self.header_arrived.eq(headers.i.valid & headers.i.ready),
            reader.header_request.valid.eq(self.fresh.valid),
            reader.header_request.payload.eq(self.fresh.payload.index),
            self.fresh.ready.eq(reader.header_request.ready),
        ]

        # Versions: only those of records that belong to pages are used. A bin's takes a cycle of its own. The
        # opener's lanes may have none to spare, so versions wait ahead of their use.
        m.submodules.versions = versions = Fifo(seal_layout(), depth=_VERSIONS)
        connect(m, versions.o, flipped(self.version))
        m.submodules.pages = pages = self.pages
        number = pages.o.payload.index
        in_host = number < config.host_pages
        m.d.comb += [
            reader.record_request.valid.eq(self.touch.valid & pages.i.ready),
            reader.record_request.payload.eq(self.touch.payload.index),
            pages.i.valid.eq(self.touch.valid & reader.record_request.ready),
            pages.i.payload.eq(self.touch.payload),
            self.touch.ready.eq(pages.i.ready & reader.record_request.ready),
            versions.i.valid.eq(reader.record_head.valid & pages.o.valid & in_host),
            versions.i.payload.page.eq(number),
            versions.i.payload.version.eq(reader.record_head.payload),
            reader.record_head.ready.eq(pages.o.valid & (versions.i.ready | ~in_host)),
            pages.o.ready.eq(reader.record_head.valid & (versions.i.ready | ~in_host)),
        ]

        connect(m, flipped(self.write), writer.i)
        m.d.comb += [
            writer.erase.eq(self.erase),
            self.erased.eq(writer.erased),
            self.busy.eq(writer.busy),
            self.late.eq(writer.late),
            self.error.eq(Cat(reader.error, writer.error).any()),
        ]
        return m
