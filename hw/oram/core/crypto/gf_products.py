"""Products of parts: the only part of a product in GF(2^128) that is not linear."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.oram.core.crypto.aes_lane import BLOCK_BITS
from hw.oram.core.crypto.gf import PART_BITS, PARTS, PRODUCT_BITS, mirror, part_product, parts


class GfProducts(wiring.Component):
    """Multiplies the parts of two blocks every cycle."""

    LATENCY: ClassVar = 2

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(BLOCK_BITS),
                "b": In(BLOCK_BITS),
                #: For `hw.oram.core.crypto.gf.combine`, of the blocks of `LATENCY` cycles ago.
                "products": Out(PRODUCT_BITS).array(PARTS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Sums of words, then products; each has two levels of logic."""
        m = Module()
        operands = []
        for name, block in (("a", self.a), ("b", self.b)):
            word = Signal(BLOCK_BITS, name=f"mirrored_{name}")
            m.d.comb += word.eq(mirror(block))
            held = [Signal(PART_BITS, name=f"{name}_{n}", reset_less=True) for n in range(PARTS)]
            m.d.sync += [register.eq(part) for register, part in zip(held, parts(word), strict=True)]
            operands.append(held)
        for n, (a, b) in enumerate(zip(*operands, strict=True)):
            product = payload_register(m, self.products[n], name=f"product_{n}")
            m.d.sync += product.eq(part_product(a, b))
        return m
