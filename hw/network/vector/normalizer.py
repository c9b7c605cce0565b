"""The int16 part of the vector unit: statistics of pixels, LayerNorm, sums and means."""

from __future__ import annotations

from functools import partial
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib.delay import delay
from hw.lib.memory import uninitialised
from hw.lib.place import Placer
from hw.network.normalization import LEAST_SHIFT, SHIFT_BITS
from hw.network.vector.config import GRANULE_LANES, VectorConfig
from hw.network.vector.layouts import ChannelPort, VectorFields
from hw.network.vector.reciprocal_root import ROOT_LATENCY, PixelFactors, ReciprocalRoot
from hw.network.vector.row_statistics import RowStatistics
from hw.network.vector.wide_lanes import (
    GRANULE_SUMS_AT,
    ROW_PORT_AT,
    SLOPE_PORT_AT,
    STEPS_PORT_AT,
    TERM_PORT_AT,
    WIDE_LANES,
    WideGranule,
)


class WideKind(data.StructLayout):
    """What a command does."""

    def __init__(self) -> None:
        super().__init__({"statistics": 1, "norm": 1, "sums": 1, "adds_up": 1})


class Normalizer(wiring.Component):
    """Statistics and results of int16.

    Behaviour
    ---------
    A step a cycle, without handshakes; see `VectorGranule`.  Statistics of pixels stay until the same rows
    are gathered anew.
    """

    def __init__(self, config: VectorConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        word = data.ArrayLayout(8 * GRANULE_LANES, config.granules)
        super().__init__(
            {
                "begin": In(1),  #: A command begins; its steps come later.
                "command": In(VectorFields(config)),  #: It stays, as ``kind`` does.
                "kind": In(WideKind()),
                "take": In(1),
                #: ``first``, ``last``: step of a window, or word of a pixel in a tile.
                "first": In(1),
                "last": In(1),
                "ends_pass": In(1),  #: Last step of a tile.
                "words": In(data.ArrayLayout(word, 2)),
                #: Granules that were read.
                "enables": In(data.ArrayLayout(config.granules, 2)),
                "channels": In(ChannelPort(config)),
                "result": Out(8 * config.lanes),
                "busy": Out(1),  #: Pixels are on their way to their statistics.
            }
        )

    @staticmethod
    def latency(config: VectorConfig) -> int:
        """Return the cycles from a pixel's last step to its factors in the RAM."""
        return GRANULE_SUMS_AT + RowStatistics.latency(config.granules) + ROOT_LATENCY + 1

    def elaborate(self, platform: Any) -> Module:
        """Lanes -> sums of pixels -> roots -> factors of pixels -> lanes."""
        m = Module()
        pixel, row, begins, ends = self._walk(m)
        factors = self._pixels(m, pixel)
        cells = self._lanes(m, row, factors)
        self._statistics(m, cells, pixel, begins, ends)
        whole = cells[: self._config.granules]
        narrow = Cat(*(cell.result[n][:8] for cell in cells for n in range(WIDE_LANES)))
        wide = Cat(*(cell.result[n] for cell in whole for n in range(WIDE_LANES)))
        m.d.comb += self.result.eq(Mux(self.command.byte, narrow, wide))
        return m

    def _walk(self, m: Module) -> tuple[Signal, Signal, Signal, Signal]:
        """Return the pixel of a step, its row of channels, and whether its tile is the first or the last."""
        command = self.command
        pixel = Signal(range(self._config.pixels), reset_less=True)
        row = Signal(range(self._config.channels), reset_less=True)
        left = Signal.like(command.outer, reset_less=True)
        begins = Signal(reset_less=True)
        ends = Signal(reset_less=True)
        with m.If(self.begin):
            m.d.sync += [
                pixel.eq(command.pixel),
                row.eq(command.channel_row),
                left.eq(command.outer - 1),
                begins.eq(1),
                ends.eq(command.outer == 1),
            ]
        with m.Elif(self.take & self.ends_pass):
            m.d.sync += [
                pixel.eq(command.pixel),
                row.eq(row + 1),
                left.eq(left - 1),
                begins.eq(0),
                ends.eq(left == 1),
            ]
        with m.Elif(self.take & self.last):
            m.d.sync += pixel.eq(pixel + 1)
        return pixel, row, begins, ends

    def _pixels(self, m: Module, pixel: Signal) -> dict[str, Value]:
        """Place the RAM of the pixels' factors; return those of a step, in time for the lanes' ports."""
        m.submodules.pixels = self._ram = uninitialised(
            width=PixelFactors().size, depth=self._config.pixels, ram_style="block"
        )
        read = self._ram.read_port()
        m.d.comb += [read.en.eq(1), read.addr.eq(pixel)]
        found = data.View(PixelFactors(), read.data)
        kind, command = self.kind, self.command
        # A sum begins with the half of its last place; a mean's other steps keep it.
        halves = Array(Const(1 << LEAST_SHIFT - 1 + n) for n in range(1 << SHIFT_BITS))
        half = Signal(LEAST_SHIFT + (1 << SHIFT_BITS) - 1, reset_less=True)
        starts = delay(m, "starts", self.take & self.first, 1)
        keeps = kind.adds_up & ~starts
        slope = Signal(PixelFactors().members["slope"], reset_less=True)
        term = Signal(PixelFactors().members["term"], reset_less=True)
        steps = Signal(PixelFactors().members["steps"], reset_less=True)
        keep = Signal(reset_less=True)
        m.d.sync += [
            half.eq(halves[command.shift]),
            slope.eq(Mux(kind.sums, command.factor_first, found.slope)),
            term.eq(Mux(kind.sums & ~keeps, half, Mux(kind.norm, found.term, 0))),
            steps.eq(found.steps),
            keep.eq(keeps),
        ]
        at = SLOPE_PORT_AT
        return {
            "slope": slope,
            "term": delay(m, "late_term", term, TERM_PORT_AT - at, reset=False),
            "keep": delay(m, "late_keep", keep, TERM_PORT_AT - at, reset=False),
            "steps": delay(m, "late_steps", steps, STEPS_PORT_AT - at, reset=False),
        }

    def _lanes(self, m: Module, row: Signal, factors: dict[str, Value]) -> list[Any]:
        """Place the lanes: those of the first word, then those of the second."""
        config, command, kind = self._config, self.command, self.kind
        late_row = delay(m, "late_row", row, ROW_PORT_AT, reset=False)
        lane_bits = exact_log2(config.lanes // WIDE_LANES)
        granule, to = self.channels.row[:lane_bits], self.channels.row[lane_bits:]
        cells = []
        for n in range(2 * config.granules):
            whole = n < config.granules
            name = "whole" if whole else "narrow"
            cell = self._placer.place(
                m,
                f"{name}_{n % config.granules}",
                f"network_vector_granule_{name}",
                partial(WideGranule, config.channels, whole=whole),
            )
            word, enables = self.words[not whole], self.enables[not whole]
            m.d.comb += [
                cell.settings.squares.eq(kind.statistics),
                cell.settings.sums.eq(kind.sums),
                cell.settings.factor.eq(command.factor_second),
                cell.settings.shift.eq(command.shift),
                cell.settings.byte.eq(command.byte),
                cell.valid.eq(self.take & enables[n % config.granules]),
                Value.cast(cell.first).eq(word[n % config.granules]),
                *(getattr(cell, port).eq(value) for port, value in factors.items()),
                cell.row.eq(late_row),
                cell.channels.enable.eq(self.channels.enable & (granule == n)),
                cell.channels.row.eq(to),
                Value.cast(cell.channels.data).eq(Value.cast(self.channels.data)),
            ]
            if whole:
                m.d.comb += Value.cast(cell.second).eq(self.words[1][n])
            cells.append(cell)
        return cells

    def _statistics(self, m: Module, cells: list[Any], pixel: Signal, begins: Signal, ends: Signal) -> None:
        """Gather the sums of pixels, and write their factors."""
        config, command = self._config, self.command
        parts = config.granules
        m.submodules.statistics = statistics = RowStatistics(config.pixels, parts)
        root = self._placer.place(m, "root", "network_vector_root", ReciprocalRoot)
        step = self.take & self.kind.statistics
        early = Signal(5 + len(pixel))
        m.d.comb += early.eq(Cat(step, self.first, self.last, begins, ends, pixel))
        late = delay(m, "step_flags", early, GRANULE_SUMS_AT)
        m.d.comb += [
            *(
                getattr(statistics, name).eq(late[n])
                for n, name in enumerate(("step", "first", "last", "begins", "ends"))
            ),
            statistics.row.eq(late[5:]),
            statistics.single.eq(command.inner == 1),
            *(statistics.sums[n].eq(cells[n].sum) for n in range(parts)),
            *(statistics.squares[n].eq(cells[n].squares) for n in range(parts)),
            root.i_valid.eq(statistics.o_valid),
            Value.cast(root.i).eq(Value.cast(statistics.o)),
            Value.cast(root.settings).eq(Value.cast(command.pixel_settings)),
        ]
        write = self._ram.write_port()
        m.d.comb += [
            write.en.eq(delay(m, "arrives", statistics.o_valid, ROOT_LATENCY)),
            write.addr.eq(delay(m, "late_pixel", statistics.o_row, ROOT_LATENCY, reset=False)),
            write.data.eq(Value.cast(root.o)),
        ]
        left = Signal(range(self.latency(config) + 1))
        with m.If(step):
            m.d.sync += [left.eq(self.latency(config)), self.busy.eq(1)]
        with m.Elif(self.busy):
            m.d.sync += [left.eq(left - 1), self.busy.eq(left != 1)]
