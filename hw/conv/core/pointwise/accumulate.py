"""Sums of a column over the tiles of its input channels, one for each pixel."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import BIAS_BITS, ConvConfig
from hw.lib.fifo import SHALLOW_DEPTH
from hw.lib.memory import RamStyle, ports, uninitialised


def dot_bits(config: ConvConfig) -> int:
    """Return the bits of a sum of products over the PA inputs of a tile, signed."""
    return 8 + config.weight_bits + (config.inputs - 1).bit_length()


class SumStep(data.StructLayout):
    """Control of the sums for the dot products of a pixel."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "valid": 1,  #: A pixel is valid.
                "first": 1,  #: Its sums begin with the biases.
                "digit": 2 if config.samples else 0,  #: The dot products are multiplied by 256 to this power.
                "pixel": range(config.block_pixels),  #: Pixel of the block.
            }
        )


class Accumulator(wiring.Component):
    """Running sums of a cell's columns, in one RAM.

    Behaviour
    ---------
    A pixel a cycle; the same pixel again after `INTERVAL` cycles at the earliest.
    """

    READ_AHEAD = 2
    LATENCY = 2
    #: Read, register, addition, write.
    INTERVAL = READ_AHEAD + LATENCY + 1

    def __init__(self, config: ConvConfig, *, columns: int) -> None:
        self._config = config
        self._columns = columns
        super().__init__(
            {
                "dots": In(signed(dot_bits(config))).array(columns),  #: Dot products of a pixel.
                "step": In(SumStep(config)),
                #: The pixel whose dot products arrive `READ_AHEAD` cycles later.
                "read": In(range(config.block_pixels)),
                "bias": In(signed(BIAS_BITS)).array(columns),
                #: Its sums, `LATENCY` cycles after the dot products.
                "o": Out(signed(config.pointwise_bits)).array(columns),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the stages."""
        m = Module()
        config, bits = self._config, self._config.pointwise_bits
        depth = config.block_pixels
        style: RamStyle = "distributed" if depth <= SHALLOW_DEPTH else "block"
        ram = uninitialised(width=self._columns * bits, depth=depth, ram_style=style)
        m.submodules.ram = ram
        write, read = ports(ram)
        before = Signal(self._columns * bits, reset_less=True)
        step = Signal(SumStep(config))
        step_2 = Signal(SumStep(config))
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(self.read),
            write.en.eq(step_2.valid),
            write.addr.eq(step_2.pixel),
            write.data.eq(Cat(*self.o)),
        ]
        m.d.sync += [before.eq(read.data), step.eq(self.step), step_2.eq(step)]
        for n, (dot, bias, o) in enumerate(zip(self.dots, self.bias, self.o, strict=True)):
            term = Signal(signed(bits), name=f"term_{n}", reset_less=True)
            base = Signal(signed(bits), name=f"base_{n}", reset_less=True)
            total = Signal(signed(bits), name=f"total_{n}", reset_less=True)
            m.d.sync += [
                term.eq(_shifted(dot, self.step.digit) if config.samples else dot),
                base.eq(Mux(self.step.first, bias[:bits], before.word_select(n, bits))),
                total.eq(base + term),
            ]
            m.d.comb += o.eq(total)
        return m


def _shifted(dot: Value, digit: Value) -> Value:
    """Multiply by 256 to the power of ``digit``."""
    choices: Sequence[Value] = [Cat(Const(0, 8 * n), dot).as_signed() for n in range(4)]
    return Mux(
        digit[1], Mux(digit[0], choices[3], choices[2]), Mux(digit[0], choices[1], choices[0])
    ).as_signed()
