"""Labels from an operation's random bits: fresh labels, labels of a miss, dummy pages."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.oram.config import OramConfig

#: Bits of a draw for one label, and its bits for a dummy page.
_HALF_BITS, _DUMMY_BITS = 64, 32


class Labels(wiring.Component):
    """Turns draws into records: one half of each draw is for fresh labels, one for misses.

    Behaviour
    ---------
    One draw a cycle; results follow `LATENCY` cycles later.
    """

    LATENCY: ClassVar = 3

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        records = data.ArrayLayout(unsigned(config.record_index_bits), config.label_count)
        super().__init__(
            {
                "draw": In(data.ArrayLayout(unsigned(2 * _HALF_BITS), config.draws)),
                #: ``fresh``, ``miss``: record of a label b, the top bits of its half. A page has record b -
                #: K. A label in HBM, b < K, has bin b S + s behind the records of pages; s are the bits below
                #: b.
                "fresh": Out(records),
                "miss": Out(records),
                #: Page drawn by the low 32 bits of a miss's half; 0 without padding.
                "dummy": Out(records),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A comparison and two sums for a label; two products for a dummy page."""
        m = Module()
        config = self._config
        halves = [
            draw[low : low + _HALF_BITS] for draw in self.draw for low in range(0, 2 * _HALF_BITS, _HALF_BITS)
        ]
        for at in range(config.label_count):
            fresh, miss = halves[at], halves[config.label_count + at]
            m.d.comb += self.fresh[at].eq(self._record(m, f"fresh_{at}", fresh))
            m.d.comb += self.miss[at].eq(self._record(m, f"miss_{at}", miss))
            if config.pad == "always" and config.hbm_labels:
                m.d.comb += self.dummy[at].eq(self._page(m, f"dummy_{at}", miss[:_DUMMY_BITS]))
        return m

    def _record(self, m: Module, name: str, half: Value) -> Value:
        config = self._config
        label_bits = config.labels.bit_length() - 1
        split_bits = config.bin_split.bit_length() - 1
        low = _HALF_BITS - label_bits - split_bits
        top = delay(m, f"{name}_top", half[low:], 1, reset=False)
        label = top[split_bits:]
        in_hbm = Signal(name=f"{name}_in_hbm", reset_less=True)
        page, hbm_bin, record = (
            Signal(config.record_index_bits, name=f"{name}_{what}", reset_less=True)
            for what in ("page", "bin", "record")
        )
        m.d.sync += [
            in_hbm.eq(label < config.hbm_labels),
            page.eq(label - config.hbm_labels),
            hbm_bin.eq(top + config.host_pages),
            record.eq(Mux(in_hbm, hbm_bin, page)),
        ]
        return record

    def _page(self, m: Module, name: str, drawn: Value) -> Value:
        """Return ``drawn * H >> 32`` as two products of 16 bits, each of which fits a DSP."""
        pages, half = self._config.host_pages, _DUMMY_BITS // 2
        drawn = delay(m, f"{name}_drawn", drawn, 1, reset=False)
        low, high = (
            Signal(half + pages.bit_length(), name=f"{name}_{what}", reset_less=True)
            for what in ("low", "high")
        )
        total = Signal(half + pages.bit_length(), name=f"{name}_total", reset_less=True)
        m.d.sync += [
            low.eq(drawn[:half] * pages),
            high.eq(drawn[half:] * pages),
            total.eq(high + (low >> half)),
        ]
        return total >> half
