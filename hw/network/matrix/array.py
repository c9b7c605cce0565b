"""The matrix array: cells of two columns, and the registers that bring pixels and weights to them."""

from __future__ import annotations

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.lanes.matrix import matrix
from hw.lib.convert import Models
from hw.lib.delay import delay
from hw.lib.loads import LOADS, copies
from hw.lib.place import InlinePlacer, Placer
from hw.network.matrix.cell import Chains, MatrixCell
from hw.network.matrix.config import BEAT_BITS, BEAT_INPUTS, RESULT_BITS, MatrixConfig
from hw.network.matrix.layouts import PARAMETER_BEATS, MatrixStep, Packet, SumControl
from hw.network.matrix.loader import PacketLoader

#: Most cells that share registers of the broadcast.
_MOST_GROUP = 8
#: These registers are equal, and must not be merged.
_KEEP = {"keep": 1}
#: These are the way across the array, and must not become shift registers.
_STAY = {"shreg_extract": "no"}
#: Cycles from a pixel to its first lane at the cells: a register, one of the half, one of the group.
_TO_CELLS = 3
#: Cycles from the transfer of a packet's word to the cells.
_BEAT_TO_CELLS = 3


class MatrixArray(wiring.Component):
    """All columns of a tile.

    Behaviour
    ---------
    A pixel a cycle, or two: then each half of the cells has one, and the packet has the weights of half the
    columns twice.  The same place again after `MatrixCell.INTERVAL` cycles at the earliest.  Results cannot
    wait.

    ``step.adopt`` is allowed while ``loaded``; the next packet's words are taken from the next cycle on.
    """

    def __init__(self, config: MatrixConfig, *, placer: Placer | None = None) -> None:
        self._config = config
        self._placer = placer or InlinePlacer()
        super().__init__(
            {
                #: Inputs of a pixel, int8, the first one lowest; the second pixel only with ``step.two``.
                "x": In(8 * config.inputs).array(2),
                "step": In(MatrixStep(config)),  #: In the same cycle.
                "kind": In(stream.Signature(Packet())),  #: The packets, in order.
                #: Their words: 8 bytes for each cell, the first cell's lowest.
                "packet": In(stream.Signature(config.packet_bits)),
                "loaded": Out(1),  #: A packet may be adopted.
                #: Results of the pixel with ``step.last`` of `latency` cycles ago, int16, the first column's
                #: lowest.
                "valid": Out(1),
                "o": Out(RESULT_BITS * config.columns),
            }
        )

    @staticmethod
    def latency(config: MatrixConfig) -> int:
        """Return the cycles from a pixel to its results."""
        return _TO_CELLS + MatrixCell.latency(config)

    @staticmethod
    def group_cells(config: MatrixConfig) -> int:
        """Return the cells that share registers of the broadcast: neighbours, all of one half."""
        return min(_MOST_GROUP, config.cells // 2)

    @staticmethod
    def least_sweep(config: MatrixConfig, *, parameters: bool) -> int:
        """Return the fewest cycles from tile to tile; ``parameters``: the second's packet has parameters."""
        if not parameters:
            return config.weight_beats + 1
        return max(config.weight_beats + 1, _parameters_wait(config)) + PARAMETER_BEATS

    def elaborate(self, platform: Any) -> Module:
        """Connect the loader and the cells, or their model."""
        m = Module()
        config = self._config
        m.submodules.loader = loader = PacketLoader(config, parameters_wait=_parameters_wait(config))
        wiring.connect(m, wiring.flipped(self.kind), loader.kind)
        wiring.connect(m, wiring.flipped(self.packet), loader.i)
        m.d.comb += [self.loaded.eq(loader.loaded), loader.adopt.eq(self.step.adopt)]
        if isinstance(platform, Models):
            found = matrix(
                m,
                x=(self.x[0], self.x[1]),
                step=self.step,
                strobes=loader.strobes,
                word=loader.word,
                pixels=config.block_pixels,
                latency=self.latency(config),
            )
        else:
            found = self._cells(m, loader)
        results = self.step.valid & self.step.last
        m.d.comb += [self.o.eq(found), self.valid.eq(delay(m, "results", results, self.latency(config)))]
        return m

    def _cells(self, m: Module, loader: PacketLoader) -> Value:
        """Place the cells, and bring pixels and words to them; return their results."""
        config = self._config
        late = _beat_delay(config)
        word: Value = loader.word
        for n in range(_BEAT_TO_CELLS - 1 + late):
            stage = Signal(config.packet_bits, name=f"word_{n}", reset_less=True, attrs=_STAY)
            m.d.sync += stage.eq(word)
            word = stage
        strobes = delay(m, "strobes", loader.strobes, late, reset=False)

        adopt, control = self._control(m)
        halves = self._pixels(m)
        outputs: list[Value] = []
        for n in range(config.cells):
            if n % self.group_cells(config) == 0:
                group = n // self.group_cells(config)
                shared = [
                    self._held(m, f"{name}_{group}", value)
                    for name, value in (
                        ("x", halves[n >= config.cells // 2]),
                        ("adopt", adopt),
                        ("control", control),
                        ("strobes", strobes),
                    )
                ]
            cell = self._placer.place(m, f"cell_{n}", "network_cell", partial(MatrixCell, config))
            x, cell_adopt, cell_control, cell_strobes = shared
            m.d.comb += [
                cell.x.eq(x),
                cell.adopt.eq(cell_adopt),
                cell.control.eq(cell_control),
                cell.strobes.eq(cell_strobes),
                cell.beat.eq(word.word_select(n, BEAT_BITS)),
            ]
            outputs += cell.o
        return Cat(*outputs)

    def _held(self, m: Module, name: str, value: Value) -> Signal:
        """Make a register of a group."""
        register = Signal(len(Value.cast(value)), name=f"{name}_held", reset_less=True, attrs=_KEEP)
        m.d.sync += register.eq(value)
        return register

    def _pixels(self, m: Module) -> list[Value]:
        """Return the words for each half of the cells, each input as late as its lane."""
        first = delay(m, "first", self.x[0], 1, reset=False)
        second = delay(m, "second", self.x[1], 1, reset=False)
        twos = copies(Signal(name="two", reset_less=True), -(-len(first) // LOADS))
        m.d.sync += [two.eq(self.step.two) for two in twos]
        upper = Cat(
            Mux(two, second.word_select(n, LOADS), first.word_select(n, LOADS)) for n, two in enumerate(twos)
        )
        chains = Chains(self._config.inputs)
        found: list[Value] = []
        for half, word in enumerate((first, upper)):
            lanes = Signal(8 * self._config.inputs, name=f"half_{half}", reset_less=True, attrs=_STAY)
            m.d.sync += lanes.eq(word)
            parts = []
            for i in range(self._config.inputs):
                value = lanes.word_select(i, 8)
                parts.append(delay(m, f"half_{half}_{i}", value, chains.lane(i), reset=False))
            found.append(Cat(*parts))
        return found

    def _control(self, m: Module) -> tuple[Value, Value]:
        """Return ``adopt`` and ``control`` of the cells, a cycle early: a group's register follows."""
        config, step = self._config, self.step
        early = _TO_CELLS - 1
        lanes = Chains(config.inputs).lanes
        read_at, sum_at = early + MatrixCell.read_at(config), early + MatrixCell.sum_at(config)
        adopts = Signal(early + lanes - 2, reset_less=True)  # bit n: n + 1 cycles ago
        m.d.sync += adopts.eq(Cat(step.adopt, adopts))
        pixel = delay(m, "read", step.pixel, read_at, reset=False)
        control = Signal(SumControl(config), name="control")
        m.d.comb += [
            control.read.eq(pixel),
            control.first.eq(delay(m, "first_tile", step.first, read_at, reset=False)),
            control.parameters.eq(
                delay(m, "parameters", step.adopt & step.parameters, read_at - 1, reset=False)
            ),
            control.shift.eq(delay(m, "shift", step.shift, read_at - 1, reset=False)),
            control.write.eq(delay(m, "write", step.valid, sum_at, reset=False)),
            control.pixel.eq(delay(m, "place", pixel, sum_at - read_at, reset=False)),
        ]
        return adopts[early - 2 :], control


def _beat_delay(config: MatrixConfig) -> int:
    """Return the cycles by which words are late, so that none comes before its lanes have adopted the tile
    that it replaces.
    """
    lane = Chains(config.inputs).lane
    lead = max(lane(config.inputs - BEAT_INPUTS * (n + 1)) - n for n in range(config.weight_beats))
    return max(0, _TO_CELLS + lead - 1 - _BEAT_TO_CELLS)


def _parameters_wait(config: MatrixConfig) -> int:
    """Return the fewest cycles from a tile's first pixel to the first word of the next tile's parameters."""
    return MatrixCell.parameters_at(config) + _TO_CELLS - _BEAT_TO_CELLS - _beat_delay(config)
