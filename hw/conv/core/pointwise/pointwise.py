"""The pointwise unit: 1 x 1 convolutions of blocks of pixels."""

from functools import partial
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.pointwise.block import BlockBuffer
from hw.conv.core.pointwise.cell import CellControl, PointwiseCell, cell_columns
from hw.conv.core.pointwise.commands import BlockCommand, DrainCommand, SweepCommand
from hw.conv.core.pointwise.drain import Drain
from hw.conv.core.pointwise.out_buffer import OutBuffer
from hw.conv.core.pointwise.shuffle import Shuffle
from hw.conv.core.pointwise.sweep import Sweep
from hw.conv.core.pointwise.weights import TileLoader, TileShape
from hw.lib.delay import delay
from hw.lib.place import InlinePlacer, Placer

#: Cells that share a register in the broadcast of pixels and weights.
_GROUP = 8
#: These registers are equal, and must not be merged.
_KEEP = {"keep": 1}
#: Cycles from reading a pixel to the cells: RAM, its register, slice, group.
_TO_CELLS = 4


class PointwiseUnit(wiring.Component):
    """Blocks of pixels in, results in the order of their map out.

    ``beat_bits``: D, bits of a beat of the port of weights.

    Behaviour
    ---------
    A sweep of a block takes `sweep_cycles`.  Sweeps follow each other from layer to layer without a gap while
    words, weights and results flow at full rate, a word or beat a cycle.  For that the halves of the buffers
    suffice where two blocks take longer than the results of one, `latency` and eight cycles more.
    """

    def __init__(self, config: ConvConfig, *, beat_bits: int, placer: Placer | None = None) -> None:
        self._config = config
        self._beat_bits = beat_bits
        self._placer = placer or InlinePlacer()
        words = stream.Signature(config.word_bits)
        super().__init__(
            {
                #: ``block``, ``i``, ``token``: commands, words and tokens of the input, see `BlockBuffer`.
                "block": In(stream.Signature(BlockCommand(config))),
                "i": In(words),
                "token": Out(stream.Signature(1)),
                #: ``bypass_block``, ``bypass``, ``bypass_token``: commands, words and tokens of the bypass.
                "bypass_block": In(stream.Signature(BlockCommand(config))),
                "bypass": In(words),
                "bypass_token": Out(stream.Signature(1)),
                "sweep": In(stream.Signature(SweepCommand(config))),  #: Layers, in order.
                "weights": In(stream.Signature(beat_bits)),  #: Their tiles, block by block, see `TileLoader`.
                #: The order in which their results leave.
                "drain": In(stream.Signature(DrainCommand(config))),
                "o": Out(words),
                #: ``busy``, ``wait_input``, ``wait_weight``, ``wait_output``: see `Sweep`.
                "busy": Out(1),
                "wait_input": Out(1),
                "wait_weight": Out(1),
                "wait_output": Out(1),
            }
        )

    @staticmethod
    def sweep_cycles(config: ConvConfig, *, pixels: int, beats: int) -> int:
        """Return the cycles from tile to tile: ``pixels`` of a block, ``beats`` of the next tile with its
        header.
        """
        return max(pixels, PointwiseCell.least_sweep(config), beats + TileLoader.GAP + Sweep.RELEASE - 1)

    @staticmethod
    def latency(config: ConvConfig) -> int:
        """Return the cycles from reading a pixel to its results."""
        return _TO_CELLS + PointwiseCell.latency(config)

    def elaborate(self, platform: Any) -> Module:
        """Connect buffers, sweep, cells and drain."""
        m = Module()
        config, flipped = self._config, wiring.flipped
        m.submodules.blocks = blocks = BlockBuffer(config, words=config.block_words)
        m.submodules.bypasses = bypasses = BlockBuffer(config, words=config.bypass_words)
        m.submodules.loader = loader = TileLoader(config, beat_bits=self._beat_bits)
        m.submodules.sweep = sweep = Sweep(config, least=PointwiseCell.least_sweep(config))
        m.submodules.results = results = OutBuffer(config)
        m.submodules.drain = drain = Drain(config)
        m.submodules.shuffle = shuffle = Shuffle(config)
        wiring.connect(m, flipped(self.block), blocks.command)
        wiring.connect(m, flipped(self.i), blocks.i)
        wiring.connect(m, blocks.token, flipped(self.token))
        wiring.connect(m, flipped(self.bypass_block), bypasses.command)
        wiring.connect(m, flipped(self.bypass), bypasses.i)
        wiring.connect(m, bypasses.token, flipped(self.bypass_token))
        wiring.connect(m, flipped(self.sweep), sweep.command)
        wiring.connect(m, flipped(self.weights), loader.i)
        wiring.connect(m, flipped(self.drain), drain.command)
        wiring.connect(m, shuffle.o, flipped(self.o))
        wiring.connect(m, loader.o, sweep.tile)
        wiring.connect(m, blocks.read, sweep.read)
        wiring.connect(m, results.read, drain.results)
        wiring.connect(m, bypasses.read, drain.bypass)
        m.d.comb += [
            sweep.free.eq(results.free),
            results.claim.eq(sweep.claim),
            drain.advance.eq(shuffle.advance),
            shuffle.step.eq(drain.step),
            shuffle.result.eq(results.read.word),
            shuffle.bypass.eq(bypasses.read.word),
            *(getattr(self, name).eq(getattr(sweep, name)) for name in _COUNTED),
        ]

        # To the cells, and delayed by their latency to the out buffer.
        step = sweep.step
        lanes = delay(m, "slice", step.slice, _TO_CELLS - 2, reset=False)
        x = Signal(8 * config.inputs, reset_less=True)
        m.d.sync += x.eq(blocks.read.word.word_select(lanes, 8 * config.inputs))
        control = delay(m, "control", step.control, _TO_CELLS - 1)
        m.d.comb += results.results.eq(Cat(*self._cells(m, loader, x, control)))
        latency = self.latency(config)
        write = delay(m, "write", step.write, latency, reset=False)
        m.d.comb += [
            results.write.eq(write),
            results.write.valid.eq(delay(m, "write_valid", step.write.valid, latency)),
            results.commit.eq(delay(m, "commit", step.commit, latency)),
        ]
        return m

    def _cells(self, m: Module, loader: TileLoader, x: Signal, control: Any) -> list[Value]:
        """Place the cells, with a register of the broadcast for each group; returns all results."""
        config, shape = self._config, TileShape(self._config, self._beat_bits)
        parameters = Signal.like(loader.parameters)
        weights = Signal.like(loader.weights)
        m.d.sync += [parameters.eq(loader.parameters), weights.eq(loader.weights)]
        outputs: list[Value] = []
        for n, columns in enumerate(cell_columns(config)):
            if n % _GROUP == 0:
                group = n // _GROUP
                x_held = Signal(8 * config.inputs, name=f"x_{group}", reset_less=True, attrs=_KEEP)
                held = Signal(CellControl(config), name=f"control_{group}", attrs=_KEEP)
                beat = Signal(self._beat_bits, name=f"beat_{group}", reset_less=True, attrs=_KEEP)
                m.d.sync += [x_held.eq(x), held.eq(control), beat.eq(loader.beat)]
            cell = self._placer.place(
                m,
                f"cell_{n}",
                f"conv_point_cell_{columns}",
                partial(PointwiseCell, config, columns=columns, beat_bits=self._beat_bits),
            )
            m.d.comb += [cell.x.eq(x_held), cell.control.eq(held)]
            for load, o in zip(cell.load, cell.o, strict=True):
                column = len(outputs)
                record_beat, record = shape.record(column)
                piece_beats, piece = shape.piece(column)
                m.d.comb += [
                    load.record.eq(beat[record:]),
                    load.parameters.eq(parameters[record_beat]),
                    load.weights.eq(beat[piece:]),
                    load.pieces.eq(weights[piece_beats.start : piece_beats.stop]),
                ]
                outputs.append(o)
        return outputs


_COUNTED = ("busy", "wait_input", "wait_weight", "wait_output")
