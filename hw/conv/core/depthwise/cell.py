"""Lanes of the depthwise array: from words of four banks to a result each."""

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import MASK_BITS, TAP_SUM_BITS, ConvConfig
from hw.conv.core.depthwise.lane_ram import LaneRam
from hw.conv.core.depthwise.samples import Samples
from hw.conv.core.depthwise.strip import Strip
from hw.conv.core.layouts import SamplePoint, TapControl, TapRead
from hw.conv.core.packets import TapLoad
from hw.conv.core.scale import BOUNDS_AT, POST_AT, RAW_AT, SCALE_LATENCY, SHIFT_AT, scale
from hw.lib.delay import delay

#: Cycles from ``read`` to ``control``.
READ_AHEAD = 2
#: Added to a number before it is cut into bytes and subtracted from each byte: they are then -128 ... 127.
_BALANCE = 0x80808080


class _Times(NamedTuple):
    """Cycles from ``control`` to: samples, products, their sum, the sum of the layer."""

    sampled: int
    product: int
    total: int


def _times(config: ConvConfig) -> _Times:
    sampled = Samples.latency(config)
    if config.strip:
        sampled = max(sampled, Strip.latency() - 2)
    return _Times(sampled, sampled + 2, sampled + 3)


class LaneCell(wiring.Component):
    """Samples, multiplies, adds and scales, for ``cell_lanes`` lanes.

    Behaviour
    ---------
    A step a cycle.  A sum begins with the channel's bias at ``first``; sums cannot overflow, see
    `TAP_SUM_BITS`.  A sample that leaves has weight 1 and no bias.
    """

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        lane_bits = 8 * config.cell_lanes
        super().__init__(
            {
                #: Number of this cell; constant.
                "index": In(range(max(2, config.lanes // config.cell_lanes))),
                "load": In(TapLoad(config)),  #: Weights of layers to come.
                "read": In(TapRead(config)),  #: Two cycles before ``control``.
                "control": In(TapControl(config)),
                "points": In(SamplePoint(config)).array(config.taps),
                "words": In(lane_bits).array(config.taps, 4),  #: The cell's lanes.
                "o": Out(lane_bits),  #: A result for each lane, `latency` cycles after ``control.last``.
            }
        )

    @staticmethod
    def latency(config: ConvConfig) -> int:
        """Return the cycles from ``control`` to ``o``."""
        return _times(config).total + SCALE_LATENCY

    def elaborate(self, platform: Any) -> Module:
        """Taps and strips meet in the sum of the layer."""
        m = Module()
        config, control = self._config, self.control
        times = _times(config)
        scaled = READ_AHEAD + times.total
        m.submodules.ram = ram = LaneRam(
            config,
            strip_at=READ_AHEAD + Strip.WEIGHTS_AT + times.product - Strip.latency(),
            parameters_at={
                "bias": READ_AHEAD + times.product,
                "multiplier": scaled,
                "shift": scaled + SHIFT_AT,
                "post": scaled + POST_AT,
            },
        )
        m.d.comb += [ram.index.eq(self.index), ram.load.eq(self.load), ram.read.eq(self.read)]
        first = delay(m, "first", control.first, times.product)
        strip = delay(m, "strip", control.strip, times.product)
        samples = delay(m, "samples", control.samples, times.product)
        settings = delay(m, "settings", control.settings, times.total + RAW_AT, reset=False)
        bounds = delay(m, "bounds", settings, BOUNDS_AT - RAW_AT, reset=False)
        digit = delay(m, "digit", control.digit, times.total + 1, reset=False)
        leaves = delay(m, "leaves", samples, 1 + SCALE_LATENCY)
        plain = delay(m, "plain", control.plain, times.total + 2)

        products, pixels = self._products(m, ram, times)
        strips = self._strips(m, ram, times) if config.strip else None
        results = []
        for lane in range(config.cell_lanes):
            parameters = ram.parameters[lane]
            total = Signal(signed(TAP_SUM_BITS), name=f"total_{lane}", reset_less=True)
            more = products[lane] if strips is None else Mux(strip, strips[lane], products[lane])
            begin = Mux(samples, 0, parameters.bias)
            m.d.sync += total.eq(Mux(first, begin, total) + more)
            result = scale(
                m,
                f"scale_{lane}",
                total,
                parameters.multiplier,
                shift=parameters.shift,
                raw=settings.raw,
                post=parameters.post,
                low=bounds.low,
                high=bounds.high,
            )
            if config.samples:
                balanced = Signal(32, name=f"balanced_{lane}", reset_less=True)
                byte = Signal(8, name=f"byte_{lane}", reset_less=True)
                m.d.sync += [
                    balanced.eq(total + _BALANCE),
                    byte.eq(balanced.word_select(digit, 8) ^ 0x80),
                ]
                # A plain pixel is delayed by as much as a sum.
                pixel = delay(m, f"pixel_{lane}", pixels[lane], times.total + 1, reset=False)
                chosen = Mux(plain, pixel, byte)
                late = delay(m, f"byte_late_{lane}", chosen, SCALE_LATENCY - 2, reset=False)
                results.append(Mux(leaves, late, result))
            else:
                results.append(result)
        m.d.comb += self.o.eq(Cat(value[:8] for value in results))
        return m

    def _products(self, m: Module, ram: Any, times: _Times) -> tuple[list[Any], list[Any]]:
        """Return for each lane the sum of T weighted samples, ``times.product`` cycles after ``control``.

        The pixels of the first tap are returned beside them, a cycle later.
        """
        config, control = self._config, self.control
        pixels: list[Any] = []
        late = times.sampled - Samples.latency(config)
        weight_bits = config.weight_bits + (MASK_BITS if config.mask else 0)
        products: list[list[Signal]] = [[] for _ in range(config.cell_lanes)]
        for t in range(config.taps):
            m.submodules[f"samples_{t}"] = samples = Samples(config)
            if t == 0:
                pixels = [samples.pixel[lane] for lane in range(config.cell_lanes)]
            point = self.points[t]
            m.d.comb += [samples.point.eq(point), samples.zero.eq(control.settings.zero)]
            m.d.comb += [samples.words[bank].eq(self.words[t][bank]) for bank in range(4)]
            on = delay(m, f"on_{t}", point.on & control.valid, times.sampled - 1)
            alone = delay(m, f"alone_{t}", control.samples, times.sampled - 1)
            masked = delay(m, f"masked_{t}", control.masked, times.sampled - 1)
            mask = delay(m, f"mask_{t}", point.mask, times.sampled - 1, reset=False)
            for lane in range(config.cell_lanes):
                one: Any = delay(
                    m, f"weight_{t}_{lane}", ram.weights[t][lane], times.sampled - 1, reset=False
                )
                weight = Signal(signed(weight_bits + 1), name=f"weighed_{t}_{lane}", reset_less=True)
                chosen = Mux(alone, Const(1, signed(config.weight_bits)), one.as_signed())
                if config.mask:
                    chosen = chosen * Mux(masked, mask, 1)
                m.d.sync += weight.eq(Mux(on, chosen, 0))
                sample = delay(m, f"sample_{t}_{lane}", samples.o[lane], late, reset=False)
                product = Signal(
                    signed(len(sample) + weight_bits), name=f"product_{t}_{lane}", reset_less=True
                )
                m.d.sync += product.eq(sample * weight)
                products[lane].append(product)
        sums = []
        for lane, values in enumerate(products):
            total = Signal(signed(len(values[0]) + len(values) - 1), name=f"products_{lane}", reset_less=True)
            m.d.sync += total.eq(values[0] if len(values) == 1 else values[0] + values[1])
            sums.append(total)
        return sums, pixels

    def _strips(self, m: Module, ram: Any, times: _Times) -> list[Any]:
        """Return for each lane the sum of nine products, ``times.product`` cycles after ``control``."""
        config, control = self._config, self.control
        late = times.product - Strip.latency()
        m.submodules.window = window = Strip(config)
        m.d.comb += [
            window.valid.eq(delay(m, "window_valid", control.valid & control.strip, late)),
            window.point.eq(delay(m, "window_point", control.window, late, reset=False)),
            window.zero.eq(delay(m, "window_zero", control.settings.zero, late, reset=False)),
            *(
                window.words[bank].eq(delay(m, f"window_{bank}", self.words[0][bank], late, reset=False))
                for bank in range(4)
            ),
            *(window.weights[lane].eq(ram.strips[lane]) for lane in range(config.cell_lanes)),
        ]
        return [window.o[lane] for lane in range(config.cell_lanes)]
