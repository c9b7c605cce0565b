"""Results of the pointwise array, held block by block until they leave."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.pointwise.block import HalvesRead, read_halves
from hw.lib.memory import uninitialised


class OutWrite(data.StructLayout):
    """Destination of the results of a pixel."""

    def __init__(self, config: ConvConfig) -> None:
        slices = config.lanes // config.outputs
        super().__init__(
            {
                "valid": 1,  #: Results are valid.
                "address": range(2 * config.block_words),  #: Word; the top bit is the half.
                "slice": (slices - 1).bit_length(),  #: Slice of PE lanes in the word.
            }
        )


class OutBuffer(wiring.Component):
    """Two halves, each for the results of a block."""

    #: Cycles from ``commit`` to ``full``, and from ``release`` to ``free``.
    COMMIT_LATENCY: ClassVar = 2
    FREE_LATENCY: ClassVar = 1

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "free": Out(1, init=1),  #: A half is free and not claimed.
                "claim": In(1),  #: The writer claims it; only while ``free``.
                "write": In(OutWrite(config)),
                "results": In(8 * config.outputs),  #: In the same cycle.
                #: The oldest half that is claimed and not committed may be read from the next cycle on: all
                #: of it is written by the time it is read.
                "commit": In(1),
                "read": In(HalvesRead(words=config.block_words, bits=config.word_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Track the halves, and build the RAM."""
        m = Module()
        config = self._config
        depth, slices = 2 * config.block_words, config.lanes // config.outputs
        ram = uninitialised(width=config.word_bits, depth=depth, ram_style=config.memory)
        m.submodules.ram = ram
        port = ram.write_port(granularity=8 * config.outputs)
        write = Signal(OutWrite(config))
        results = Signal(8 * config.outputs, reset_less=True)
        committed = Signal()
        m.d.sync += [write.eq(self.write), results.eq(self.results), committed.eq(self.commit)]
        m.d.comb += [
            port.addr.eq(write.address),
            port.data.eq(results.replicate(slices)),
            *(port.en[n].eq(write.valid & (write.slice == n)) for n in range(slices)),
        ]
        read_halves(m, ram, self.read)

        claimed = Signal(range(3))
        full = Signal(range(3))
        left = Signal.like(claimed)
        m.d.comb += [left.eq(claimed + self.claim - self.read.release), self.read.full.eq(full != 0)]
        m.d.sync += [
            claimed.eq(left),
            self.free.eq(left != 2),
            full.eq(full + committed - self.read.claim),
        ]
        return m
