"""The stream of weights: packets of records, and the writes of records to cells."""

from enum import IntEnum

from amaranth.hdl import signed
from amaranth.lib import data

from hw.conv.config import TAP_LAYER_WORDS, ConvConfig

#: Bits of a record of weights: the parameters of one channel, or weights of 8 lanes or 9 taps.
RECORD_BITS = 128


class Record(IntEnum):
    """The content of a packet of the stream of weights."""

    TAPS = 0
    STRIPS = 1
    PARAMETERS = 2
    TILE = 3
    DOT = 4
    DOT_PARAMETERS = 5


#: Bits of a kind of packet.
KIND_BITS = 3


class TapLoad(data.StructLayout):
    """A record on its way to the RAM of a lane cell, or to the offsets' dot products."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "valid": 1,  #: A record is valid.
                #: `Record.TAPS`: weights of T taps of the cell's 8 lanes, tap by tap.  `Record.STRIPS`: nine
                #: weights of one lane.  `Record.PARAMETERS`: of one lane, see `Parameters`.  `Record.DOT`: 8
                #: lanes of one output, then of another.  `Record.DOT_PARAMETERS`: of one output.
                "kind": KIND_BITS,
                #: ``cell``, ``lane``: of the record; no lane with `Record.TAPS`.
                "cell": range(max(2, config.lanes // config.cell_lanes)),
                "lane": range(config.cell_lanes),
                "half": 1,
                #: ``weight`` of `TapRead`, or ``word``.
                "address": range(max(config.tap_words, TAP_LAYER_WORDS, config.dot_words)),
                "record": RECORD_BITS,
            }
        )


class Parameters(data.StructLayout):
    """A record of a channel's parameters, in the low bits; `Settings` has the formula."""

    def __init__(self) -> None:
        super().__init__(
            {
                "bias": signed(48),  #: Added to the sum.
                #: ``multiplier``, ``post``, ``shift``: the scale of the biased sum.
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
                #: PE records of parameters precede the weights: with the first tile of an output tile.
                "parameters": 1,
                #: ``first``, ``last``: of the tiles of one sum.
                "first": 1,
                "last": 1,
                "ends": 1,  #: The last tile of a block.
                "digit": 2,  #: Its products are multiplied by 256 to this power.
                #: ``word``, ``slice``: source of its PA input channels: word of the pixel, and slice of PA
                #: lanes in it.
                "word": 16,
                "slice": 4,
                #: ``out_word``, ``out_slice``: destination of its PE results.
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
                "ends": 1,  #: The last packet of a layer.
                "unused": 4,
                "records": 24,  #: Records that follow, packed; the last beat is padded.
            }
        )
