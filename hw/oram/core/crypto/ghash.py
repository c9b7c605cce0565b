"""GHASH of pages, a beat a cycle (SP 800-38D, section 6.4)."""

from typing import Any, ClassVar

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay, payload_register
from hw.lib.memory import RamStyle, ports, uninitialised
from hw.lib.place import Placer
from hw.oram.config import BLOCK_BYTES
from hw.oram.core.crypto.aes_lane import BLOCK_BITS
from hw.oram.core.crypto.config import LUT_DEPTH, PageShape, power_layout
from hw.oram.core.crypto.gf import PARTS, PRODUCT_BITS, combine, exclusive_or, mirror, reduce
from hw.oram.core.crypto.gf_products import GfProducts


class Ghash(wiring.Component):
    """Hashes a page's ciphertext and its length.

    Behaviour
    ---------
    It never stalls; a beat may arrive in any cycle. Each slot is multiplied by its own power of the hash key,
    so that no product waits for another. Products are added in parts (`hw.oram.core.crypto.gf`): all lanes
    together need one step to combine them and one to reduce them.
    """

    #: A cycle each: the sum over the lanes, the combination, and the reduction.
    LATENCY: ClassVar = GfProducts.LATENCY + 3

    def __init__(self, shape: PageShape, placer: Placer) -> None:
        self._shape = shape
        self._placer = placer
        super().__init__(
            {
                "power": In(power_layout(shape)),  #: Between pages only.
                "valid": In(1),
                #: Slot 0 of a page, its tag, is ignored: the block with the length is hashed instead.
                "beat": In(shape.beat_bits),
                "done": Out(1),
                "hash": Out(BLOCK_BITS),  #: With ``done``, `LATENCY` cycles after the last beat of a page.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A table and a product for each lane, and one sum."""
        m = Module()
        shape, lanes = self._shape, self._shape.lanes
        beat = Signal(range(shape.beats))
        following = Signal(range(shape.beats))
        first = Signal()
        last = Signal()
        m.d.comb += [
            following.eq(beat),
            first.eq(beat == 0),
            last.eq(self.valid & (beat == shape.beats - 1)),
        ]
        with m.If(self.valid):
            m.d.comb += following.eq(Mux(beat == shape.beats - 1, 0, beat + 1))
        m.d.sync += beat.eq(following)

        # Two lengths in bits, of 8 bytes each, the highest first: of additional data, which is empty, and of
        # the text.
        text_bits = 8 * BLOCK_BYTES * (shape.slots - 1)
        lengths = Const(int.from_bytes(text_bits.to_bytes(BLOCK_BYTES, "big"), "little"), BLOCK_BITS)
        products = []
        for n in range(lanes):
            lane = self._placer.place(m, f"products_{n}", "gf_products", GfProducts)
            block = self.beat.word_select(n, BLOCK_BITS)
            m.d.comb += [
                lane.a.eq(Mux(first, lengths, block) if n == 0 else block),
                lane.b.eq(self._power(m, n, following)),
            ]
            products.append(list(lane.products))

        valid = delay(m, "valid", self.valid, GfProducts.LATENCY)
        starts = delay(m, "first", first, GfProducts.LATENCY)
        sums = [Signal(PRODUCT_BITS, name=f"sum_{n}", reset_less=True) for n in range(PARTS)]
        with m.If(valid):
            for n, total in enumerate(sums):
                added = exclusive_or(lane[n] for lane in products)
                m.d.sync += total.eq(added ^ Mux(starts, 0, total))
        product = Signal(2 * BLOCK_BITS - 1, reset_less=True)
        m.d.sync += [
            product.eq(combine(m, sums)),
            payload_register(m, self.hash).eq(mirror(reduce(product))),
        ]
        m.d.comb += self.done.eq(delay(m, "last", last, self.LATENCY))
        return m

    def _power(self, m: Module, lane: int, row: Signal) -> Signal:
        """Store the powers of a lane, and return that of ``row`` a cycle later."""
        beats = self._shape.beats
        style: RamStyle = "distributed" if beats <= LUT_DEPTH else "block"
        table = uninitialised(width=BLOCK_BITS, depth=max(2, beats), ram_style=style)
        m.submodules[f"powers_{lane}"] = table
        write, read = ports(table)
        lane_bits = (self._shape.lanes - 1).bit_length()
        m.d.comb += [
            write.en.eq(self.power.en & (self.power.slot[:lane_bits] == lane)),
            write.addr.eq(self.power.slot[lane_bits:]),
            write.data.eq(self.power.value),
            read.addr.eq(row),
            read.en.eq(1),
        ]
        return read.data
