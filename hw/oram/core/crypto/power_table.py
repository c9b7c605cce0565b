"""Powers of the hash key for all parts that hash pages of one shape."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.place import Placer
from hw.oram.core.crypto.aes_lane import BLOCK_BITS
from hw.oram.core.crypto.config import PageShape, power_layout
from hw.oram.core.crypto.gf_multiplier import GfMultiplier


class PowerTable(wiring.Component):
    """Computes the powers after a change of the key, and writes them to all hashes."""

    def __init__(self, shape: PageShape, placer: Placer) -> None:
        self._shape = shape
        self._placer = placer
        super().__init__(
            {
                #: Takes ``hash_key``, and abandons work in progress;
                #: `hw.oram.core.crypto.key_schedule.KeySchedule.done`.
                "start": In(1),
                "hash_key": In(BLOCK_BITS),
                #: With n slots in a page, slot s has power n + 1 - s. Slot 0 is hashed last and has power 1.
                "power": Out(power_layout(shape)),
                #: High for one cycle, `latency` cycles after ``start``: all powers are written.
                "done": Out(1),
            }
        )

    @staticmethod
    def latency(shape: PageShape) -> int:
        """Return the cycles from ``start`` to ``done``."""
        return 2 + (shape.slots - 1) * (GfMultiplier.LATENCY + 1)

    def elaborate(self, platform: Any) -> Module:
        """Sequential products, each of the previous power and the first."""
        m = Module()
        m.submodules.multiplier = multiplier = GfMultiplier(self._placer)
        hash_key, value = (Signal(BLOCK_BITS, name=name, reset_less=True) for name in ("first", "value"))
        slot = Signal(range(self._shape.slots))
        busy = Signal()
        is_new = Signal()
        wait = Signal(range(GfMultiplier.LATENCY + 1))
        m.d.comb += [
            multiplier.a.eq(value),
            multiplier.b.eq(hash_key),
            self.power.en.eq(is_new),
            self.power.slot.eq(slot),
            self.power.value.eq(value),
        ]
        m.d.sync += [is_new.eq(0), self.done.eq(is_new & (slot == 1))]
        with m.If(busy):
            m.d.sync += wait.eq(wait + 1)
            with m.If(wait == GfMultiplier.LATENCY):
                m.d.sync += [
                    wait.eq(0),
                    value.eq(multiplier.o),
                    slot.eq(Mux(slot == 0, self._shape.slots, slot) - 1),
                    is_new.eq(1),
                    busy.eq(slot != 2),
                ]
        with m.If(self.start):
            m.d.sync += [
                hash_key.eq(self.hash_key),
                value.eq(self.hash_key),
                slot.eq(0),
                wait.eq(0),
                is_new.eq(1),
                busy.eq(1),
                self.done.eq(0),
            ]
        return m
