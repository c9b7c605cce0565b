"""Columns of the pointwise array that share multipliers: weights, dot products, sums, results."""

from typing import Any

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Settings
from hw.conv.core.packets import Parameters
from hw.conv.core.pointwise.accumulate import Accumulator, SumStep, dot_bits
from hw.conv.core.pointwise.triple import triple_factor, triple_latency, triple_products
from hw.conv.core.pointwise.weights import ColumnLoad
from hw.conv.core.scale import BOUNDS_AT, POST_AT, RAW_AT, SCALE_LATENCY, SHIFT_AT, scale
from hw.lib.arithmetic.dot_product import dot_latency, dot_products, factor
from hw.lib.delay import delay


def cell_columns(config: ConvConfig) -> list[int]:
    """Return the columns of each cell: as many as share a multiplier; the last cell may have fewer."""
    most = 2 if config.weight_bits == 8 else 3
    return [min(most, config.outputs - first) for first in range(0, config.outputs, most)]


class CellControl(data.StructLayout):
    """Control of the cells for a pixel."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "step": SumStep(config),
                #: The pixel is the first of a tile: the weights that were loaded are used from it on.
                "adopt": 1,
                "parameters": 1,  #: With ``adopt``: so are the parameters.
                "settings": Settings(),  #: With ``adopt``: the bounds and the raw flag, too.
            }
        )


class PointwiseCell(wiring.Component):
    """One to three columns of the array.

    ``beat_bits``: D, see `ColumnLoad`.

    Behaviour
    ---------
    A pixel a cycle.  Tiles are adopted at least `least_sweep` cycles apart, and the pixels of a tile arrive
    in consecutive cycles.
    """

    def __init__(self, config: ConvConfig, *, columns: int, beat_bits: int) -> None:
        self._config = config
        self._columns = columns
        super().__init__(
            {
                "x": In(data.ArrayLayout(signed(8), config.inputs)),  #: Input channels of a pixel.
                "control": In(CellControl(config)),
                #: Loads the tile that is adopted next.
                "load": In(ColumnLoad(config, beat_bits)).array(columns),
                "o": Out(signed(8)).array(columns),  #: Results of the pixel of `latency` cycles ago.
            }
        )

    @staticmethod
    def dot_at(config: ConvConfig) -> int:
        """Return the cycles from a pixel to its dot products."""
        latency = dot_latency if config.weight_bits == 8 else triple_latency
        return 2 + latency(config.inputs)

    @staticmethod
    def latency(config: ConvConfig) -> int:
        """Return the cycles from a pixel to its results."""
        return PointwiseCell.dot_at(config) + Accumulator.LATENCY + SCALE_LATENCY

    @staticmethod
    def least_sweep(config: ConvConfig) -> int:
        """Return the fewest cycles from tile to tile: parameters must reach their last stage in between."""
        last_use = PointwiseCell.dot_at(config) + Accumulator.LATENCY + BOUNDS_AT
        return max(Accumulator.INTERVAL, last_use - 2)

    def elaborate(self, platform: Any) -> Module:
        """Build weights, dot products, sums and scales."""
        m = Module()
        config = self._config
        columns, dot_at = range(self._columns), self.dot_at(config)
        sum_at = dot_at + Accumulator.LATENCY
        control = Signal(CellControl(config))
        x_in = Signal(data.ArrayLayout(signed(8), config.inputs), reset_less=True)
        m.d.sync += [control.eq(self.control), x_in.eq(self.x)]
        weights = [self._loaded(m, n) for n in columns]
        x, factors = [], []
        make_factor = factor if config.weight_bits == 8 else triple_factor
        for i in range(config.inputs):
            packed = make_factor([w.word_select(i, config.weight_bits).as_signed() for w in weights])
            used = Signal(packed.shape(), name=f"factor_{i}", reset_less=True)
            held = Signal(signed(8), name=f"x_{i}", reset_less=True)
            m.d.sync += held.eq(x_in[i])
            with m.If(control.adopt):
                m.d.sync += used.eq(packed)
            x.append(held)
            factors.append(used)
        multiply = dot_products if config.weight_bits == 8 else triple_products
        dots = multiply(m, factors, x, vectors=self._columns, bits=dot_bits(config))

        m.submodules.accumulator = sums = Accumulator(config, columns=self._columns)
        ahead = dot_at - 1 - Accumulator.READ_AHEAD
        m.d.comb += [
            sums.read.eq(delay(m, "pixel", control.step.pixel, ahead, reset=False)),
            sums.step.eq(delay(m, "step", control.step, dot_at - 1)),
            *(sums.dots[n].eq(dots[n]) for n in columns),
        ]

        # Parameters: loaded, adopted with the first pixel, then adopted by each stage as that pixel reaches
        # it.
        adopted = Signal(sum_at + BOUNDS_AT)  # bit n: n cycles after it reached the cell
        adopted_parameters = Signal.like(adopted)
        adopts_parameters = control.adopt & control.parameters
        m.d.comb += [adopted[1].eq(control.adopt), adopted_parameters[1].eq(adopts_parameters)]
        m.d.sync += [
            adopted[2:].eq(adopted[1:]),
            adopted_parameters[2:].eq(adopted_parameters[1:]),
        ]

        def staged(name: str, value: Value, at: int, strobes: Signal) -> Signal:
            register = Signal(value.shape(), name=name, reset_less=True)
            with m.If(strobes[at - 1]):
                m.d.sync += register.eq(value)
            return register

        settings = Signal(Settings(), reset_less=True)
        with m.If(control.adopt):
            m.d.sync += settings.eq(control.settings)
        raw = staged("raw", settings.raw, sum_at + RAW_AT, adopted)
        low = staged("low", settings.low, sum_at + BOUNDS_AT, adopted)
        high = staged("high", settings.high, sum_at + BOUNDS_AT, adopted)
        for n in columns:
            loaded = Signal(Parameters(), name=f"loaded_parameters_{n}", reset_less=True)
            used = Signal(Parameters(), name=f"parameters_{n}", reset_less=True)
            with m.If(self.load[n].parameters):
                m.d.sync += loaded.eq(self.load[n].record)
            with m.If(adopts_parameters):
                m.d.sync += used.eq(loaded)

            def parameter(name: str, at: int, n: int = n, used: Any = used) -> Signal:
                return staged(f"{name}_{n}", getattr(used, name), at, adopted_parameters)

            m.d.comb += sums.bias[n].eq(parameter("bias", dot_at))
            result = scale(
                m,
                f"scale_{n}",
                sums.o[n],
                parameter("multiplier", sum_at),
                shift=parameter("shift", sum_at + SHIFT_AT),
                raw=raw,
                post=parameter("post", sum_at + POST_AT),
                low=low,
                high=high,
            )
            m.d.comb += self.o[n].eq(result)
        return m

    def _loaded(self, m: Module, column: int) -> Signal:
        """Hold the weights of a column as they arrive."""
        load = self.load[column]
        pieces = len(load.pieces)
        weights = Signal(pieces * len(load.weights), name=f"loaded_{column}", reset_less=True)
        for piece in range(pieces):
            with m.If(load.pieces[piece]):
                m.d.sync += weights.word_select(piece, len(load.weights)).eq(load.weights)
        return weights
