"""The loader and the transfers from memory behind one DMA."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib.dma.burst import command_layout
from hw.lib.fifo import Fifo
from hw.network.config import WORD_BYTES
from hw.network.kernel.loader import CHUNK
from hw.scheduler.core.layouts import MEMORY_ADDRESS_BITS

#: Commands whose words have not all come.
_UNDER_WAY = 64


class Owner(data.StructLayout):
    """Whose words a command brings; of the loader's, ``more`` after the first."""

    def __init__(self) -> None:
        super().__init__({"loader": 1, "more": range(CHUNK)})


class SharedReads(wiring.Component):
    """Sends the commands of both to a DMA, and its words to the one that asked for them.

    Behaviour
    ---------
    No latency.  A command of the loader goes only when no transfer was there or ``wanted`` in the cycle
    before; then it is the first one.  While ``loading`` all words are the loader's.  Later commands of the
    loader are of at most `CHUNK` words.

    Why
    ---
    Commands are whole words, so no word has bytes of two.  The loader takes every word after some cycles,
    and transfers those of commands that were let go.  So neither holds the other up for ever.
    """

    def __init__(self) -> None:
        command = stream.Signature(command_layout(MEMORY_ADDRESS_BITS))
        words = stream.Signature(8 * WORD_BYTES)
        super().__init__(
            {
                "loading": In(1),
                "wanted": In(1),  #: Up in the cycle before a transfer's command at the latest.
                #: ``transfers``, ``load``: commands of both.
                "transfers": In(command),
                "load": In(command),
                "command": Out(command),
                "words": In(words),  #: Of the commands, in order.
                #: ``loaded``, ``moved``: words of the loader, and of transfers.
                "loaded": Out(words),
                "moved": Out(words),
                "ends": In(1),  #: The word in ``moved`` is the last one of its command.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Choice -> queue of owners -> words."""
        m = Module()
        m.submodules.owners = owners = Fifo(Owner(), depth=_UNDER_WAY)
        turn = Signal(init=1)  # the loader's
        taken = Signal()
        low = exact_log2(WORD_BYTES)
        m.d.comb += [
            Value.cast(self.command.payload).eq(
                Mux(turn, Value.cast(self.load.payload), Value.cast(self.transfers.payload))
            ),
            self.command.valid.eq(Mux(turn, self.load.valid, self.transfers.valid) & owners.i.ready),
            taken.eq(self.command.valid & self.command.ready),
            self.load.ready.eq(taken & turn),
            self.transfers.ready.eq(taken & ~turn),
            owners.i.valid.eq(taken & ~self.loading),
            owners.i.payload.loader.eq(turn),
            owners.i.payload.more.eq((self.load.payload.length >> low) - 1),
        ]
        # An offered command stays.
        stays = turn & self.load.valid & ~taken
        m.d.sync += turn.eq(stays | ~(self.transfers.valid | self.wanted))
        self._split(m, owners)
        return m

    def _split(self, m: Module, owners: Fifo) -> None:
        """Send each word to its owner; there is one before the word comes."""
        owner = owners.o.payload
        own = Signal()  # the word is the loader's
        part = Signal()  # of a command behind the opening
        place = Signal(range(CHUNK))  # of the word in it
        last = Signal()
        m.d.comb += [
            part.eq(owners.o.valid & owner.loader),
            own.eq(self.loading | part),
            self.loaded.valid.eq(self.words.valid & own),
            self.loaded.payload.eq(self.words.payload),
            self.moved.valid.eq(self.words.valid & ~own),
            self.moved.payload.eq(self.words.payload),
        ]
        with m.If(own):
            m.d.comb += [self.words.ready.eq(self.loaded.ready), last.eq(place == owner.more)]
        with m.Else():
            m.d.comb += [self.words.ready.eq(self.moved.ready), last.eq(self.ends)]
        done = self.words.valid & self.words.ready & ~self.loading
        m.d.comb += owners.o.ready.eq(done & last)
        with m.If(done & part):
            m.d.sync += place.eq(place + 1)
            with m.If(last):
                m.d.sync += place.eq(0)
