"""The sweep: steps of the matrix array, each with its pixel, when pixel, weights and room are there."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.feed_command import TABLE_ENTRIES
from hw.network.matrix.layouts import SHIFT_BITS, MatrixStep
from hw.network.matrix.result_walk import ResultOrder


class SweepCommand(data.StructLayout):
    """Blocks, column tiles, k tiles and steps of a command."""

    def __init__(self) -> None:
        super().__init__(
            {
                "order": ResultOrder(),
                "k_tiles": range(TABLE_ENTRIES + 1),  #: At least 1.
                "two": 1,  #: Two pixels a step.
            }
        )


class MatrixSweep(wiring.Component):
    """For each block, column tile, k tile and step of a command: one step of the array.

    Behaviour
    ---------
    A step a cycle while words of the feeds are valid.  A k tile's first step waits until its weights are
    loaded, a last k tile's steps for room in the drain.  The next command is taken with the last step, and
    its first step may follow in the next cycle.
    """

    def __init__(self, config: MatrixConfig) -> None:
        self._config = config
        word = data.ArrayLayout(8, config.inputs)
        super().__init__(
            {
                "command": In(stream.Signature(SweepCommand())),
                "words": In(stream.Signature(word)).array(2),  #: Of both feeds.
                "shift": In(SHIFT_BITS),  #: Of the first feed's word.
                "loaded": In(1),  #: `MatrixArray.loaded`.
                "room": In(1),  #: `Drain.room`.
                "step": Out(MatrixStep(config)),
                "taken": Out(1),  #: A result will come, for `Drain.taken`.
                "waits_pixels": Out(1),  #: A step waits for its pixel.
                "waits_weights": Out(1),  #: It has its pixel and waits for its weights.
                "waits_room": Out(1),  #: It has both and waits for the drain.
                "busy": Out(1),  #: A step in this cycle.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Four nested counters, and the conditions of a step."""
        m = Module()
        now = Signal(SweepCommand())
        begin = Signal()
        active = Signal()
        fire = Signal()
        ends = Signal()
        place = self._count(m, now, begin, fire)
        with m.If(begin):
            m.d.sync += [now.eq(self.command.payload), active.eq(1)]
        with m.Elif(ends):
            m.d.sync += active.eq(0)
        pixels = Signal()
        weights = Signal()
        room = Signal()
        m.d.comb += [
            pixels.eq(self.words[0].valid & (self.words[1].valid | ~now.two)),
            weights.eq(self.loaded | ~place.first_step),
            room.eq(self.room | ~place.last_k),
            fire.eq(active & pixels & weights & room),
            ends.eq(fire & place.last_step & place.last_k & place.last_n & place.last_block),
            self.command.ready.eq(~active | ends),
            begin.eq(self.command.valid & self.command.ready),
            self.words[0].ready.eq(fire),
            self.words[1].ready.eq(fire & now.two),
            self.step.valid.eq(fire),
            self.step.pixel.eq(place.pixel),
            self.step.first.eq(place.first_k),
            self.step.last.eq(place.last_k),
            self.step.adopt.eq(fire & place.first_step),
            self.step.parameters.eq(place.first_k),
            self.step.two.eq(now.two),
            self.step.shift.eq(self.shift),
            self.taken.eq(fire & place.last_k),
            self.busy.eq(fire),
            self.waits_pixels.eq(active & ~pixels),
            self.waits_weights.eq(active & pixels & ~weights),
            self.waits_room.eq(active & pixels & weights & ~room),
        ]
        return m

    def _count(self, m: Module, now: Any, begin: Signal, fire: Signal) -> Any:
        """Count the steps of a command; return the place of the next one."""
        order = now.order
        pixel = range(self._config.block_pixels)
        flags = dict.fromkeys(("first_step", "last_step", "first_k", "last_k", "last_n", "last_block"), 1)
        place = Signal(data.StructLayout({"pixel": pixel} | flags))
        left = Signal.like(order.steps)
        k_left = Signal.like(now.k_tiles)
        n_left = Signal.like(order.n_tiles)
        blocks_left = Signal.like(order.blocks)
        next_last = Signal()  # the next block is the last
        short = Signal()  # a block has one step
        short_last = Signal()  # the last block has one step

        def restart(final: Value, given: Any, shorts: tuple[Value, Value]) -> list[Any]:
            return [
                left.eq(Mux(final, given.last_steps, given.steps) - 1),
                place.last_step.eq(Mux(final, shorts[1], shorts[0])),
                place.first_step.eq(1),
                place.pixel.eq(0),
            ]

        def k_tile(tiles: Value) -> list[Any]:
            return [k_left.eq(tiles - 1), place.last_k.eq(tiles == 1), place.first_k.eq(1)]

        def n_tile(tiles: Value) -> list[Any]:
            return [n_left.eq(tiles - 1), place.last_n.eq(tiles == 1)]

        with m.If(fire):
            m.d.sync += [
                left.eq(left - 1),
                place.last_step.eq(left == 1),
                place.first_step.eq(0),
                place.pixel.eq(place.pixel + 1),
            ]
        with m.If(fire & place.last_step):
            m.d.sync += [
                *restart(place.last_block, order, (short, short_last)),
                k_left.eq(k_left - 1),
                place.last_k.eq(k_left == 1),
                place.first_k.eq(0),
            ]
            with m.If(place.last_k):
                m.d.sync += [*k_tile(now.k_tiles), n_left.eq(n_left - 1), place.last_n.eq(n_left == 1)]
                with m.If(place.last_n):
                    m.d.sync += [
                        *n_tile(order.n_tiles),
                        blocks_left.eq(blocks_left - 1),
                        place.last_block.eq(next_last),
                        next_last.eq(blocks_left == 2),
                        *restart(next_last, order, (short, short_last)),
                    ]
        with m.If(begin):
            given = self.command.payload
            shorts = given.order.steps == 1, given.order.last_steps == 1
            single = given.order.blocks == 1
            m.d.sync += [
                *k_tile(given.k_tiles),
                *n_tile(given.order.n_tiles),
                blocks_left.eq(given.order.blocks - 1),
                place.last_block.eq(single),
                next_last.eq(given.order.blocks == 2),
                *restart(single, given.order, shorts),
                Cat(short, short_last).eq(Cat(*shorts)),
            ]
        return place
