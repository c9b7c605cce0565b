"""Loads tiles from the stream of weights into the columns of the array."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.packets import RECORD_BITS, Parameters, TileHeader


class TileShape:
    """The layout of a tile in beats.

    ``beat_bits``: D, bits of a beat of the port of weights.
    """

    def __init__(self, config: ConvConfig, beat_bits: int) -> None:
        #: Weights of a column, which are contiguous, first input channel lowest.
        self.column_bits = config.inputs * config.weight_bits
        #: ``piece_bits``, ``pieces``: bits of a column in one beat, and the number of its beats.
        self.piece_bits = min(self.column_bits, beat_bits)
        self.pieces = self.column_bits // self.piece_bits
        #: ``parameter_beats``, ``weight_beats``: beats of the tile's parameters, and of its weights.
        self.parameter_beats = max(1, config.outputs * RECORD_BITS // beat_bits)
        self.weight_beats = max(1, config.tile_bits // beat_bits)
        self._records = beat_bits // RECORD_BITS
        self._columns = max(1, beat_bits // self.column_bits)

    def record(self, column: int) -> tuple[int, int]:
        """Return the beat of a column's parameters, and their lowest bit in it."""
        return column // self._records, column % self._records * RECORD_BITS

    def piece(self, column: int) -> tuple[range, int]:
        """Return the beats of a column's weights, and their lowest bit in each."""
        first = column // self._columns if self.pieces == 1 else column * self.pieces
        return range(first, first + self.pieces), column % self._columns * self.column_bits


class ColumnLoad(data.StructLayout):
    """Writes to a column of the array while a tile is loaded."""

    def __init__(self, config: ConvConfig, beat_bits: int) -> None:
        shape = TileShape(config, beat_bits)
        super().__init__(
            {
                "weights": shape.piece_bits,  #: A piece of its weights.
                "pieces": shape.pieces,  #: One bit for each piece: it is on ``weights``.
                "record": Parameters(),
                "parameters": 1,  #: ``record`` belongs to the column.
            }
        )


class TileLoader(wiring.Component):
    """Distributes the tiles of the stream to the columns.

    Behaviour
    ---------
    A beat a cycle.  The first beat after a header is on ``beat`` at least `GAP` cycles after the previous
    tile was taken.
    """

    #: Fewest cycles from a transfer on ``o`` to the next tile's first beat after its header on ``beat``.
    GAP = 3

    def __init__(self, config: ConvConfig, *, beat_bits: int) -> None:
        self._shape = shape = TileShape(config, beat_bits)
        super().__init__(
            {
                #: For each tile a header, a record of parameters for each column if the header has the flag,
                #: and weights.
                "i": In(stream.Signature(beat_bits)),
                #: A tile that is loaded; the next one loads after it was taken.
                "o": Out(stream.Signature(TileHeader())),
                "beat": Out(beat_bits),  #: The beat taken in the previous cycle.
                #: ``parameters``, ``weights``: one bit for each of the tile's beats, set for the beat on
                #: ``beat``.
                "parameters": Out(shape.parameter_beats),
                "weights": Out(shape.weight_beats),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Shift one bit along the beats of a tile."""
        m = Module()
        shape = self._shape
        header = data.View(TileHeader(), self.i.payload[: TileHeader().size])
        beats = shape.parameter_beats + shape.weight_beats
        expected = Signal(beats)  # one bit: the next beat; none before the header
        take = Signal()
        heads = Signal(init=1)
        strobes = Signal(beats)
        m.d.comb += [
            self.i.ready.eq(~self.o.valid),
            take.eq(self.i.valid & self.i.ready),
            Cat(self.parameters, self.weights).eq(strobes),
        ]
        m.d.sync += [self.beat.eq(self.i.payload), strobes.eq(expected & take.replicate(beats))]
        with m.If(take):
            m.d.sync += [expected.eq(expected << 1), self.o.valid.eq(expected[-1])]
            with m.If(heads):
                weights_only = Const(1 << shape.parameter_beats, beats)
                m.d.sync += [
                    self.o.payload.eq(header),
                    expected.eq(Mux(header.parameters, 1, weights_only)),
                    heads.eq(0),
                ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [self.o.valid.eq(0), heads.eq(1)]
        return m
