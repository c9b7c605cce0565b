"""Tables in memory, cut into words for every stream: rows of a bitmap, entries of a page table."""

from typing import Any

from amaranth.hdl import Cat, Module, Shape, ShapeLike, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.lib.dma.align_read import packed_layout
from hw.lib.fifo import Fifo
from hw.lib.width import WidthConverter

#: Tiles whose bits are in one word.
WORD_TILES = 128
#: Words of a bitmap queued for each stream: a row of 65,536 keys with tiles of 16 in one stream.
BITMAP_WORDS = 32


class TableWords(wiring.Component):
    """Cuts tables into words.

    ``shape``: of the words to the streams.  A word that has room above its bits marks the last one of its
    table there.  ``word_bits``: bits of a word: a power of two from 8 to 128. ``depth``: words queued for
    each stream. ``data_width``: bits of a word from memory.

    Behaviour
    ---------
    A word a cycle, while all streams have room.
    """

    def __init__(
        self, config: AttentionConfig, shape: ShapeLike, *, word_bits: int, depth: int, data_width: int
    ) -> None:
        self._config = config
        self._shape = shape
        self._word_bits = word_bits
        self._depth = depth
        self._data_width = data_width
        super().__init__(
            {
                "i": In(stream.Signature(packed_layout(data_width))),  #: Tables, multiples of 32 bytes.
                #: The same words for all streams: each has keys in every tile.
                "o": Out(stream.Signature(shape)).array(config.streams),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        bits = self._word_bits
        lanes = self._data_width // bits
        m.submodules.converter = converter = WidthConverter(lane_width=bits, i_lanes=lanes, o_lanes=1)
        m.d.comb += [
            converter.i.payload.data.eq(self.i.payload.data),
            converter.i.payload.keep.eq(Cat(self.i.payload.keep[n * bits // 8] for n in range(lanes))),
            converter.i.payload.last.eq(self.i.payload.last),
            converter.i.valid.eq(self.i.valid),
            self.i.ready.eq(converter.i.ready),
        ]
        word = Cat(converter.o.payload.data, converter.o.payload.last)[: Shape.cast(self._shape).width]
        queues = []
        for s in range(self._config.streams):
            m.submodules[f"queue_{s}"] = queue = Fifo(self._shape, depth=self._depth)
            queues.append(queue)
            m.d.comb += [
                Value.cast(queue.i.payload).eq(word),
                Value.cast(self.o[s].payload).eq(Value.cast(queue.o.payload)),
                self.o[s].valid.eq(queue.o.valid),
                queue.o.ready.eq(self.o[s].ready),
            ]
        push = converter.o.valid & converter.o.ready
        m.d.comb += [
            converter.o.ready.eq(Cat(*(queue.i.ready for queue in queues)).all()),
            *(queue.i.valid.eq(push) for queue in queues),
        ]
        return m
