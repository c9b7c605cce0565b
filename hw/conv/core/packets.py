"""The stream of weights: packets of records, and how records reach the cells."""

from __future__ import annotations

from enum import IntEnum

from amaranth.hdl import signed
from amaranth.lib import data

from hw.conv.config import TAP_LAYER_WORDS, ConvConfig

#: Bits of a record of weights: the parameters of one channel, or weights of 8 lanes or 9 taps.
RECORD_BITS = 128


class Record(IntEnum):
    """What a packet of the stream of weights has."""

    TAPS = 0
    STRIPS = 1
    PARAMETERS = 2
    TILE = 3
    DOT = 4
    DOT_PARAMETERS = 5


#: Bits of a kind of packet.
KIND_BITS = 3


class TapLoad(data.StructLayout):
    """A record on its way to the RAM of a lane cell, or of the offsets' dot products."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "valid": 1,  #: There is one.
                #: `Record.TAPS`: weights of T taps of the cell's 8 lanes, tap by tap.  `Record.STRIPS`: nine
                #: weights of one lane.  `Record.PARAMETERS`: of one lane, see `Parameters`.  `Record.DOT`: 8
                #: lanes of two outputs, one after the other.  `Record.DOT_PARAMETERS`: of one output.
                "kind": KIND_BITS,
                #: ``cell``, ``lane``: which cell; which of its lanes, unless `Record.TAPS`.
                "cell": range(max(2, config.lanes // config.cell_lanes)),
                "lane": range(config.cell_lanes),
                "half": 1,
                #: ``weight`` of `TapRead`, or ``word``.
                "address": range(max(config.tap_words, TAP_LAYER_WORDS, config.dot_words)),
                "record": RECORD_BITS,
            }
        )


class Parameters(data.StructLayout):
    """A record of parameters of a channel, in the low bits: see `Settings` for what they do."""

    def __init__(self) -> None:
        super().__init__(
            {
                "bias": signed(48),  #: Added to the sum.
                #: ``multiplier``, ``post``, ``shift``: scale behind it.
                "multiplier": 16,
                "post": signed(16),
                "shift": 6,
            }
        )


class TileHeader(data.StructLayout):
    """The first beat of a packet of `Record.TILE`, in the low bits."""

    def __init__(self) -> None:
        super().__init__(
            {
                "kind": KIND_BITS,  #: `Record.TILE`.
                #: PE records of parameters follow before the weights: with the first tile of an output tile.
                "parameters": 1,
                #: ``first``, ``last``: of the tiles that are summed.
                "first": 1,
                "last": 1,
                "ends": 1,  #: The last tile of a block.
                "digit": 2,  #: Its products count 256 to this power.
                #: ``word``, ``slice``: where its PA input channels are: word of the pixel, and which PA lanes
                #: of it.
                "word": 16,
                "slice": 4,
                #: ``out_word``, ``out_slice``: where its PE results go.
                "out_word": 16,
                "out_slice": 4,
            }
        )


class PacketHeader(data.StructLayout):
    """The first beat of any other packet, in the low bits."""

    def __init__(self) -> None:
        super().__init__(
            {
                "kind": KIND_BITS,
                "ends": 1,  #: The last packet of a layer's.
                "unused": 4,
                "records": 24,  #: Records that follow, packed; the last beat is filled up.
            }
        )
