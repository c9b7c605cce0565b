"""Order of the pointwise array: the pixels of a block for each tile of weights."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.packets import TileHeader
from hw.conv.core.pointwise.block import QUEUE, HalvesRead
from hw.conv.core.pointwise.cell import CellControl
from hw.conv.core.pointwise.commands import SweepCommand
from hw.conv.core.pointwise.out_buffer import OutWrite
from hw.lib.fifo import Fifo


class SweepStep(data.StructLayout):
    """Control of the pixel whose word is read."""

    def __init__(self, config: ConvConfig) -> None:
        slices = config.lanes // config.inputs
        super().__init__(
            {
                "slice": (slices - 1).bit_length(),  #: Slice of PA lanes of the word for the cells.
                "control": CellControl(config),
                "write": OutWrite(config),  #: Destination of the results.
                "commit": 1,  #: First pixel of the block's last sweep.
            }
        )


class _Tile(data.StructLayout):
    """A tile and its block: the header, and the block's address."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "header": TileHeader(),
                "address": range(2 * config.block_words),
                "out_address": range(2 * config.block_words),
                "left": range(config.block_pixels),
                "cycles": range(max(config.block_pixels, 64)),
            }
        )


class Sweep(wiring.Component):
    """Sweeps each block once for every tile.

    ``least``: fewest cycles from tile to tile.

    Behaviour
    ---------
    A pixel a cycle, from tile to tile and from block to block, if tile, block and room are ready before the
    last pixel but one.  A tile of fewer than ``least`` pixels takes ``least`` cycles.

    The first pixel of a block's last sweep frees the block's half and releases its results.  The sweep stays
    ahead: in cycle p it reads word p or a later one, and results of pixel p are not read before.
    """

    #: Cycles from a tile's begin to the pop of its header: until the cells have adopted the weights.
    RELEASE = 2

    #: Cycles to take a command; from a tile, a block or room to the decision; from there to the first pixel.
    TAKE_LATENCY: ClassVar = 1
    DECIDE_LATENCY: ClassVar = 1
    BEGIN_LATENCY: ClassVar = 1

    def __init__(self, config: ConvConfig, *, least: int) -> None:
        self._config = config
        self._least = least
        super().__init__(
            {
                "command": In(stream.Signature(SweepCommand(config))),
                #: A loaded tile; taken `RELEASE` cycles after its first pixel was decided.
                "tile": In(stream.Signature(TileHeader())),
                "read": Out(HalvesRead(words=config.block_words, bits=config.word_bits)),  #: The blocks read.
                "free": In(1),  #: The out buffer has a half for another block; ``claim`` claims it.
                "claim": Out(1),
                "step": Out(SweepStep(config)),  #: Of the pixel read in this cycle.
                #: ``busy``, ``wait_input``, ``wait_weight``, ``wait_output``: a pixel is read; or none, for
                #: want of a block, of a tile, or of room for results.
                "busy": Out(1),
                "wait_input": Out(1),
                "wait_weight": Out(1),
                "wait_output": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Decide the next tile, and read its pixels."""
        m = Module()
        config, header = self._config, self.tile.payload
        m.submodules.commands = commands = Fifo(SweepCommand(config), depth=QUEUE)
        wiring.connect(m, wiring.flipped(self.command), commands.i)
        layer = Signal(SweepCommand(config))  # the current layer, and its last block's number
        active = Signal()
        more = Signal.like(layer.blocks.blocks)  # blocks after the current one
        opens = Signal(init=1)  # the next tile is a block's first
        half = Signal()
        running = Signal()
        following = Signal(_Tile(config))
        following_valid = Signal()
        tile = Signal(_Tile(config))
        begin = Signal()
        final = Signal()
        prepare = Signal()

        # The next sweep is decided as soon as it is known.
        begun = Signal(self.RELEASE)  # bit n: n + 1 cycles ago
        known = self.tile.valid & ~begun.any() & ~following_valid & active
        pixels = Signal(range(config.block_pixels + 1))
        m.d.comb += [
            pixels.eq(Mux(more == 0, layer.blocks.last_block, layer.blocks.block)),
            prepare.eq(known & (~opens | (self.read.full & self.free))),
            self.read.claim.eq(prepare & opens),
            self.claim.eq(prepare & opens),
            self.tile.ready.eq(begun[-1]),
        ]
        with m.If(prepare):
            m.d.sync += [
                following_valid.eq(1),
                following.header.eq(header),
                following.address.eq(Cat(header.word[: len(tile.address) - 1], half)),
                following.out_address.eq(Cat(header.out_word[: len(tile.address) - 1], half)),
                following.left.eq(pixels - 1),
                following.cycles.eq(Mux(pixels < self._least, self._least, pixels) - 1),
            ]
        m.d.comb += [
            final.eq(running & (tile.cycles == 0)),
            begin.eq(following_valid & (~running | final)),
        ]
        m.d.sync += begun.eq(Cat(begin, begun))
        with m.If(begin):
            m.d.sync += [following_valid.eq(0), opens.eq(following.header.ends)]
            with m.If(following.header.ends):
                m.d.sync += [half.eq(~half), more.eq(more - 1), active.eq(more != 0)]
        m.d.comb += commands.o.ready.eq(~active)
        with m.If(~active):
            m.d.sync += [
                layer.eq(commands.o.payload),
                active.eq(commands.o.valid),
                more.eq(commands.o.payload.blocks.blocks - 1),
            ]
        self._run(m, layer, begin, final, running, following, tile)
        waits = active & ~running & ~following_valid
        blocked = waits & self.tile.valid & opens
        m.d.comb += [
            self.wait_weight.eq(waits & ~self.tile.valid),
            self.wait_input.eq(blocked & ~self.read.full),
            self.wait_output.eq(blocked & self.read.full & ~self.free),
        ]
        return m

    def _run(
        self, m: Module, layer: Any, begin: Signal, final: Signal, running: Signal, following: Any, tile: Any
    ) -> None:
        """Read the pixels of a tile."""
        config, step = self._config, self.step
        words = Signal.like(layer.blocks.words)
        out_words = Signal.like(layer.out_words)
        pixel = Signal(range(config.block_pixels))
        reads = Signal()
        opening = Signal()
        settings = Signal.like(layer.settings)
        last_read = tile.left == 0
        with m.If(begin):
            m.d.sync += [
                tile.eq(following),
                pixel.eq(0),
                words.eq(layer.blocks.words),
                out_words.eq(layer.out_words),
                settings.eq(layer.settings),
                running.eq(1),
                reads.eq(1),
                opening.eq(1),
            ]
        with m.Elif(running):
            m.d.sync += [
                tile.address.eq(tile.address + words),
                tile.out_address.eq(tile.out_address + out_words),
                tile.left.eq(tile.left - 1),
                tile.cycles.eq(tile.cycles - 1),
                pixel.eq(pixel + 1),
                running.eq(~final),
                reads.eq(reads & ~last_read),
                opening.eq(0),
            ]
        header = tile.header
        m.d.comb += [
            self.read.en.eq(1),
            self.read.address.eq(tile.address),
            self.read.release.eq(opening & header.ends),
            self.busy.eq(reads),
            step.slice.eq(header.slice),
            step.control.step.valid.eq(reads),
            step.control.step.first.eq(header.first),
            step.control.step.digit.eq(header.digit),
            step.control.step.pixel.eq(pixel),
            step.control.adopt.eq(opening),
            step.control.parameters.eq(header.parameters),
            step.control.settings.eq(settings),
            step.write.valid.eq(reads & header.last),
            step.write.address.eq(tile.out_address),
            step.write.slice.eq(header.out_slice),
            step.commit.eq(opening & header.ends),
        ]
