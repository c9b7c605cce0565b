"""A design of one's own around both DMAs: every byte of a range of memory, plus 1, to another range.

``add_one.v`` is the same design in Verilog.
"""

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.cores import ReadDMA, WriteDMA, axi


class AddOne(wiring.Component):
    """Adds 1 to bytes on their way from one address to another.

    A range may begin at any byte and have any length.
    """

    def __init__(self, *, data_width: int = 64, addr_width: int = 32, fifo_beats: int = 32) -> None:
        self._sizes: Any = {"data_width": data_width, "addr_width": addr_width, "fifo_beats": fifo_beats}
        job = data.StructLayout({"source": addr_width, "target": addr_width, "length": 32})
        super().__init__(
            {
                "i_job": In(stream.Signature(job)),  #: Ranges must not overlap; at least 1 byte.
                "o_done": Out(stream.Signature(1)),  #: One for each job, in order; 1 after an error.
                "axi": Out(axi.Signature(data_width=data_width, addr_width=addr_width)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Reader, adders, writer; a job is a command for each of the two."""
        m = Module()
        m.submodules.reader = reader = ReadDMA(**self._sizes, commands=4)
        m.submodules.writer = writer = WriteDMA(**self._sizes, commands=4, outstanding=8)
        axi.connect(m, read=reader.axi, write=writer.axi, port=self.axi)
        connect(m, writer.done, flipped(self.o_done))
        job, read, write = self.i_job.payload, reader.command, writer.command
        words = reader.o.payload.data
        m.d.comb += [
            # `valid` of neither waits for its own `ready`, so both are taken in one cycle.
            read.valid.eq(self.i_job.valid & write.ready),
            write.valid.eq(self.i_job.valid & read.ready),
            self.i_job.ready.eq(read.ready & write.ready),
            read.payload.address.eq(job.source),
            write.payload.address.eq(job.target),
            read.payload.length.eq(job.length),
            write.payload.length.eq(job.length),
            # Words are packed from lane 0 on both sides; the rest of a job's last word is ignored.
            writer.i.payload.data.eq(Cat((words.word_select(n, 8) + 1)[:8] for n in range(len(words) // 8))),
            writer.i.valid.eq(reader.o.valid),
            reader.o.ready.eq(writer.i.ready),
        ]
        return m
