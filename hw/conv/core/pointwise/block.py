"""Blocks of pixels on chip: one is filled while another is read."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.pointwise.commands import BlockCommand
from hw.lib.fifo import Fifo
from hw.lib.memory import uninitialised
from hw.lib.skid import Skid

#: Commands in the queue of a unit.
QUEUE = 4


class HalvesRead(wiring.Signature):
    """The read side of a buffer of two halves, as its user sees it."""

    def __init__(self, *, words: int, bits: int) -> None:
        super().__init__(
            {
                "full": In(1),  #: A half may be read, and is not claimed.
                #: The user claims it; only while ``full``.  Halves alternate, 0 first.
                "claim": Out(1),
                #: The oldest half that is claimed and not released may be written, a word a cycle, from the
                #: next cycle on.
                "release": Out(1),
                #: ``en``, ``address``: of the word two cycles later; the top bit is the half.  The RAM and
                #: its output register advance with ``en`` only.
                "en": Out(1),
                "address": Out(range(2 * words)),
                "word": In(bits),
            }
        )


def read_halves(m: Module, ram: Any, read: Any) -> None:
    """Connect a RAM, with a register after it, to the read side ``read``."""
    port = ram.read_port()
    word = Signal(len(port.data), name="read_word", reset_less=True)
    m.d.comb += [port.en.eq(read.en), port.addr.eq(read.address), read.word.eq(word)]
    with m.If(read.en):
        m.d.sync += word.eq(port.data)


class BlockBuffer(wiring.Component):
    """Two halves, each for the words of a block.

    ``words``: words of a half, a power of two.

    Behaviour
    ---------
    A word a cycle, without gaps between the blocks of a map.  Credits are granted block by block in order,
    ahead of the words: the second half's as soon as the first is being filled.
    """

    #: Cycles from a command to its first token and to its first word; from ``release`` to both; from the last
    #: word of a block to ``full``.
    TOKEN_LATENCY: ClassVar = 3
    OPEN_LATENCY: ClassVar = 4
    RELEASE_LATENCY: ClassVar = 2
    ROOM_LATENCY: ClassVar = 3
    FULL_LATENCY: ClassVar = 2

    def __init__(self, config: ConvConfig, *, words: int) -> None:
        self._words = words
        self._memory = config.memory
        self._command = BlockCommand(config)
        super().__init__(
            {
                #: Maps, in the order of their words; ``block * words`` must fit into a half.
                "command": In(stream.Signature(self._command)),
                #: A credit for each block of a map that is ``asked`` for; the bit is unused.
                "token": Out(stream.Signature(1)),
                "i": In(stream.Signature(config.word_bits)),  #: Pixel by pixel.
                #: Word w of pixel p is at ``p * words + w``.
                "read": In(HalvesRead(words=words, bits=config.word_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Grant halves to blocks in order, and fill them."""
        m = Module()
        m.submodules.commands = commands = Fifo(self._command, depth=QUEUE)
        m.submodules.promised = promised = Skid(self._command)  # not LUT RAM: sums begin here
        wiring.connect(m, wiring.flipped(self.command), commands.i)

        # Blocks are granted halves in order; a block that is asked for then sends its token.
        # of the map whose blocks are granted halves
        asked = Signal()
        given_to = Signal()
        more = Signal(range(1 << len(commands.o.payload.blocks)))  # blocks after the next
        given = Signal(range(3))  # halves that are not free
        give = Signal()
        free = Signal(init=1)
        m.d.comb += [
            promised.i.valid.eq(commands.o.valid & ~given_to),
            promised.i.payload.eq(commands.o.payload),
            commands.o.ready.eq(promised.i.ready & ~given_to),
            give.eq(given_to & free & (~self.token.valid | self.token.ready)),
        ]
        with m.If(~given_to):
            m.d.sync += [
                given_to.eq(commands.o.valid & promised.i.ready),
                asked.eq(commands.o.payload.asked),
                more.eq(commands.o.payload.blocks - 1),
            ]
        with m.If(give):
            m.d.sync += [self.token.valid.eq(asked), more.eq(more - 1), given_to.eq(more != 0)]
        with m.Elif(self.token.ready):
            m.d.sync += self.token.valid.eq(0)
        left = Signal.like(given)
        m.d.comb += left.eq(given + give - self.read.release)
        m.d.sync += [given.eq(left), free.eq(left != 2)]

        filled = self._fill(m, promised, give)
        full = Signal(range(3))
        m.d.comb += self.read.full.eq(full != 0)
        m.d.sync += full.eq(full + filled - self.read.claim)
        return m

    def _fill(self, m: Module, promised: Skid, give: Signal) -> Signal:
        """Write words to the halves that were granted; pulse when one is full."""
        held = Signal(self._command)  # the map whose words arrive: counts less one
        active = Signal()
        is_open = Signal()
        is_last = Signal()
        owed = Signal(range(3))  # blocks that have a half and are not full
        half = Signal()
        address = Signal(range(self._words))
        word = Signal.like(held.words)
        pixel = Signal.like(held.block)
        last_pixel = Signal.like(held.block)
        take = Signal()
        ends_pixel = Signal()
        ends_block = Signal()
        ends = Signal()
        m.d.comb += [
            self.i.ready.eq(is_open),
            take.eq(self.i.valid & is_open),
            ends_pixel.eq(word == held.words),
            ends_block.eq(take & ends_pixel & (pixel == last_pixel)),
            ends.eq(ends_block & is_last),
            promised.o.ready.eq(~active),
        ]
        m.d.sync += owed.eq(owed + give - ends_block)
        given = promised.o.payload
        with m.If(~active):
            m.d.sync += [
                *(held[name].eq(given[name] - 1) for name in ("block", "last_block", "blocks", "words")),
                active.eq(promised.o.valid),
                is_last.eq(given.blocks == 1),
                last_pixel.eq(Mux(given.blocks == 1, given.last_block, given.block) - 1),
            ]
        with m.If(ends_block):
            m.d.sync += [
                is_open.eq((owed == 2) & ~ends),
                active.eq(~is_last),
                half.eq(~half),
                held.blocks.eq(held.blocks - 1),
                is_last.eq(held.blocks == 1),
                last_pixel.eq(Mux(held.blocks == 1, held.last_block, held.block)),
            ]
        with m.Elif(active):
            m.d.sync += is_open.eq(owed != 0)
        with m.If(take):
            m.d.sync += [word.eq(word + 1), address.eq(address + 1)]
            with m.If(ends_pixel):
                m.d.sync += [word.eq(0), pixel.eq(pixel + 1)]
            with m.If(ends_block):
                m.d.sync += [pixel.eq(0), address.eq(0)]

        ram = uninitialised(width=len(self.i.payload), depth=2 * self._words, ram_style=self._memory)
        m.submodules.ram = ram
        write = ram.write_port()
        writes = Signal()
        full = Signal()
        place = Signal(range(2 * self._words), reset_less=True)
        payload = Signal(len(self.i.payload), reset_less=True)
        m.d.sync += [
            writes.eq(take),
            place.eq(Cat(address, half)),
            payload.eq(self.i.payload),
            full.eq(ends_block),
        ]
        m.d.comb += [write.en.eq(writes), write.addr.eq(place), write.data.eq(payload)]
        read_halves(m, ram, self.read)
        return full
