"""Product in GF(2^128), a pair of blocks a cycle."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.lib.place import Placer
from hw.oram.core.crypto.aes_lane import BLOCK_BITS
from hw.oram.core.crypto.gf import combine, mirror, reduce
from hw.oram.core.crypto.gf_products import GfProducts


class GfMultiplier(wiring.Component):
    """Multiplies two blocks every cycle (SP 800-38D, section 6.3)."""

    LATENCY: ClassVar = GfProducts.LATENCY + 2

    def __init__(self, placer: Placer) -> None:
        self._placer = placer
        super().__init__(
            {
                "a": In(BLOCK_BITS),
                "b": In(BLOCK_BITS),
                "o": Out(BLOCK_BITS),  #: The product of `LATENCY` cycles ago.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Products of parts, combined, reduced."""
        m = Module()
        products = self._placer.place(m, "products", "gf_products", GfProducts)
        m.d.comb += [products.a.eq(self.a), products.b.eq(self.b)]
        product = Signal(2 * BLOCK_BITS - 1, reset_less=True)
        m.d.sync += [
            product.eq(combine(m, list(products.products))),
            payload_register(m, self.o).eq(mirror(reduce(product))),
        ]
        return m
