"""Both tables of the position map in HBM."""

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.place import Placer
from hw.oram.config import BUCKET_BYTES, OramConfig
from hw.oram.core.layouts import ADDRESS_BITS, HBM_BEAT_BYTES, bucket_beat_layout, bucket_layout
from hw.oram.core.position.lookahead import TABLES
from hw.oram.movers.erase import bucket_lines
from hw.oram.movers.hbm.line_reader import LineReader
from hw.oram.movers.hbm.line_writer import LineWriter
from hw.oram.movers.hbm.lines import LineRead, Lines

_READS = (LineRead(name="bucket", length=BUCKET_BYTES, word_bytes=BUCKET_BYTES),)


class Buckets(wiring.Component):
    """Reads and writes buckets; table 0 has the first half of the ports."""

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        ports = config.position_ports
        super().__init__(
            {
                "base": In(ADDRESS_BITS).array(ports),
                #: ``request``, ``bucket``, ``write``: the other ends of
                #: `hw.oram.core.position.position.Position`.
                "request": In(stream.Signature(config.bucket_bits)).array(TABLES),
                "bucket": Out(stream.Signature(bucket_layout(config))).array(TABLES),
                "write": In(stream.Signature(bucket_beat_layout(config))).array(TABLES),
                "axi": Out(axi.Signature(data_width=8 * HBM_BEAT_BYTES, addr_width=ADDRESS_BITS)).array(
                    ports
                ),
                #: ``busy``, ``late``, ``error``: as in `LineWriter`; ``error`` also of reads.
                "busy": Out(1),
                "late": Out(1),
                "error": Out(1),
                #: ``erase``, ``erased``: as in `LineWriter`: every byte becomes zero.
                "erase": In(1),
                "erased": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A reader and a writer for each table."""
        m = Module()
        config = self._config
        ports = config.position_ports // TABLES
        lines = Lines(
            ports=ports,
            port_bytes=HBM_BEAT_BYTES,
            line_bytes=BUCKET_BYTES,
            line_bits=config.bucket_bits,
            slice_lines=bucket_lines(config),
        )
        readers, writers = [], []
        for n in range(TABLES):
            reader = LineReader(
                lines,
                _READS,
                outstanding=config.position.inflight,
                depth=config.position.inflight,
                requests=config.position.inflight,
                cell="bucket_read_port",
                placer=self._placer,
            )
            writer = LineWriter(
                lines,
                deadline=config.position.write_cycles,
                depth=config.position.write_beats,
                cell="bucket_write_port",
                placer=self._placer,
            )
            m.submodules[f"reader_{n}"], m.submodules[f"writer_{n}"] = reader, writer
            connect(m, flipped(self.request[n]), reader.bucket_request)
            connect(m, flipped(self.write[n]), writer.i)
            m.d.comb += [
                self.bucket[n].valid.eq(reader.bucket.valid),
                self.bucket[n].payload.as_value().eq(reader.bucket.payload),
                reader.bucket.ready.eq(self.bucket[n].ready),
                writer.erase.eq(self.erase),
            ]
            for p in range(ports):
                at = n * ports + p
                axi.connect(m, read=reader.axi[p], write=writer.axi[p], port=self.axi[at])
                m.d.comb += [reader.base[p].eq(self.base[at]), writer.base[p].eq(self.base[at])]
            readers.append(reader)
            writers.append(writer)
        m.d.comb += [
            self.busy.eq(Cat(writer.busy for writer in writers).any()),
            self.late.eq(Cat(writer.late for writer in writers).any()),
            self.erased.eq(Cat(writer.erased for writer in writers).all()),
            self.error.eq(
                Cat(reader.error for reader in readers).any() | Cat(w.error for w in writers).any()
            ),
        ]
        return m
