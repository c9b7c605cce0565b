"""Rows of a bitmap, cut into words, for every stream."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.lib.align_read import packed_layout
from hw.lib.fifo import Fifo
from hw.lib.width import WidthConverter

#: Tiles whose bits are looked at in a cycle.
WORD_TILES = 128
#: Words kept for each stream: a row of 65,536 keys and tiles of 16 in one stream.
_DEPTH = 32


class BitmapWords(wiring.Component):
    """Takes bitmap rows apart.

    Parameters
    ----------
    config
        Shape of the engine.
    data_width
        Bits of a word from memory.

    Members
    -------
    i : In(stream of packed_layout(data_width))
        Rows, multiples of 32 bytes.
    o : Out(S streams of WORD_TILES bits)
        The same for all: each stream has keys in every tile.

    Behaviour
    ---------
    A word a cycle, while all streams have room.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        super().__init__(
            {
                "i": In(stream.Signature(packed_layout(data_width))),
                "o": Out(stream.Signature(WORD_TILES)).array(config.streams),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        lanes = self._data_width // WORD_TILES
        m.submodules.converter = converter = WidthConverter(lane_width=WORD_TILES, i_lanes=lanes, o_lanes=1)
        m.d.comb += [
            converter.i.payload.data.eq(self.i.payload.data),
            converter.i.payload.keep.eq(Cat(self.i.payload.keep[n * WORD_TILES // 8] for n in range(lanes))),
            converter.i.payload.last.eq(self.i.payload.last),
            converter.i.valid.eq(self.i.valid),
            self.i.ready.eq(converter.i.ready),
        ]
        queues = []
        for s in range(self._config.streams):
            m.submodules[f"queue_{s}"] = queue = Fifo(WORD_TILES, depth=_DEPTH)
            queues.append(queue)
            m.d.comb += [
                queue.i.payload.eq(converter.o.payload.data),
                self.o[s].payload.eq(queue.o.payload),
                self.o[s].valid.eq(queue.o.valid),
                queue.o.ready.eq(self.o[s].ready),
            ]
        push = converter.o.valid & converter.o.ready
        m.d.comb += [
            converter.o.ready.eq(Cat(*(queue.i.ready for queue in queues)).all()),
            *(queue.i.valid.eq(push) for queue in queues),
        ]
        return m
