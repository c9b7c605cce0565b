"""Bilinear interpolation without rounding: samples of one tap, of the lanes of a cell."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import SamplePoint
from hw.lib.delay import delay


class Samples(wiring.Component):
    """Interpolates between four neighbours: ``4^F`` times the value, less the zero point.

    Behaviour
    ---------
    A sample a cycle and lane, by three multiplications: ``v0 = (a << F) + (b - a) lx``, ``v1`` is ``v0`` of
    the row below, ``S = (v0 << F) + (v1 - v0) ly - (zero << 2 F)``.  A neighbour outside the map has the zero
    point for a value.  The four weights add up to 4^F, so a point among such neighbours yields 0.
    """

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "words": In(8 * config.cell_lanes).array(4),  #: The lanes of the cell, from each bank.
                "point": In(SamplePoint(config)),
                "zero": In(signed(8)),
                #: The upper left neighbour, or the zero point, a cycle later.
                "pixel": Out(signed(8)).array(config.cell_lanes),
                #: Signed, ``sample_bits`` wide, `latency` cycles later.
                "o": Out(signed(config.sample_bits)).array(config.cell_lanes),
            }
        )

    @staticmethod
    def latency(config: ConvConfig) -> int:
        """Return the cycles from ``words`` to ``o``: permutation, then twice difference, product and sum."""
        return 7 if config.fraction_bits else 2

    def elaborate(self, platform: Any) -> Module:
        """Build the stages."""
        m = Module()
        config, point = self._config, self.point
        fraction = config.fraction_bits
        corners: list[list[Any]] = []
        # 1: the neighbours in their places.
        for n in range(4):
            bank = Cat(point.odd_column ^ (n & 1), point.odd_row ^ (n >> 1))
            word = Array(self.words)[bank]
            lanes = []
            for lane in range(config.cell_lanes):
                corner = Signal(signed(8), name=f"corner_1_{n}_{lane}", reset_less=True)
                m.d.sync += corner.eq(Mux(point.inside[n], word.word_select(lane, 8).as_signed(), self.zero))
                lanes.append(corner)
            corners.append(lanes)
        m.d.comb += [self.pixel[lane].eq(corner) for lane, corner in enumerate(corners[0])]
        zero = delay(m, "zero_1", self.zero, 1, reset=False)
        if not fraction:
            for lane in range(config.cell_lanes):
                m.d.sync += self.o[lane].eq(corners[0][lane] - zero)
            return m

        lx = delay(m, "lx_2", point.lx, 2, reset=False)
        ly = delay(m, "ly_5", point.ly, 5, reset=False)
        zero = delay(m, "zero_6", zero, 5, reset=False)
        for lane in range(config.cell_lanes):
            across = [
                self._between(m, f"{lane}_{r}", corners[2 * r][lane], corners[2 * r + 1][lane], lx, 2)
                for r in range(2)
            ]
            # Level by level; the last sum subtracts the zero point as well.
            difference = Signal(signed(len(across[0]) + 1), name=f"difference_5_{lane}", reset_less=True)
            product = Signal(signed(len(difference) + fraction), name=f"product_6_{lane}", reset_less=True)
            upper = delay(m, f"upper_5_{lane}", across[0], 1, reset=False)
            base = Signal(signed(config.sample_bits), name=f"base_6_{lane}", reset_less=True)
            m.d.sync += [
                difference.eq(across[1] - across[0]),
                product.eq(difference * ly),
                base.eq((upper << fraction) - (delay(m, f"z_{lane}", zero, 0) << 2 * fraction)),
                self.o[lane].eq(base + product),
            ]
        return m

    def _between(self, m: Module, name: str, a: Any, b: Any, weight: Any, stage: int) -> Signal:
        """Return ``(a << F) + (b - a) * weight``, three cycles later."""
        fraction = self._config.fraction_bits
        difference = Signal(signed(len(a) + 1), name=f"difference_{stage}_{name}", reset_less=True)
        product = Signal(signed(len(a) + 1 + fraction), name=f"product_{stage + 1}_{name}", reset_less=True)
        value = Signal(signed(len(a) + 1 + fraction), name=f"between_{stage + 2}_{name}", reset_less=True)
        m.d.sync += [
            difference.eq(b - a),
            product.eq(difference * weight),
            value.eq((delay(m, f"from_{stage + 1}_{name}", a, 2, reset=False) << fraction) + product),
        ]
        return value
