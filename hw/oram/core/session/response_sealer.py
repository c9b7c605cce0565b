"""Seals responses: from rows of the stage to records for the host."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.oram.config import BLOCK_BYTES, OramConfig
from hw.oram.core.border import BORDER, at_border, stream_at_border
from hw.oram.core.crypto.aes_lane import BLOCK_BITS, KEYS_LAYOUT
from hw.oram.core.crypto.config import power_layout
from hw.oram.core.crypto.page_seal import PageSeal
from hw.oram.core.layouts import BEAT_BITS
from hw.oram.core.session.record import (
    BEAT_BLOCKS,
    CONFIRM_BITS,
    RESPONSE,
    SEQUENCE_BITS,
    TEXT_HEADER_BLOCKS,
    record_nonces,
    record_shape,
)
from hw.oram.core.stage.layouts import response_layout


class ResponseSealer(wiring.Component):
    """Seals responses in order.

    Behaviour
    ---------
    One block a cycle. Sequence numbers count responses. Every port is a register: the sealer may lie on
    another die (`hw.oram.regions`).
    """

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        self._shape = record_shape(config)
        super().__init__(
            {
                #: ``round_keys``, ``power``: of the session's key; as in `PageSeal`.
                "round_keys": In(KEYS_LAYOUT),
                "power": In(power_layout(self._shape)),
                "confirm": In(CONFIRM_BITS),  #: Sealed in each response behind its status.
                "enable": In(1),  #: The keys are valid.
                #: Rows of responses, one a cycle; responses are at least ``config.interval`` cycles apart.
                "i": In(stream.Signature(response_layout(config), always_ready=True)),
                #: Records; the last beat `latency` cycles after the response's first row.
                "o": Out(stream.Signature(BEAT_BITS, always_ready=True)),
            }
        )

    @staticmethod
    def latency(config: OramConfig) -> int:
        """Return the cycles from a response's first row to its last beat: all blocks in, then all out."""
        slots = record_shape(config).slots
        return BORDER + Fifo.LATENCY + (slots - 1) + PageSeal.LATENCY + (slots - 1) + BORDER

    def elaborate(self, platform: Any) -> Module:
        """Rows wait until their blocks are sealed; sealed blocks are joined to beats behind the sequence
        number.
        """
        m = Module()
        config, shape = self._config, self._shape
        m.submodules.seal = sealer = PageSeal(shape, self._placer)
        m.d.comb += [
            sealer.round_keys.eq(at_border(m, "keys_held", self.round_keys)),
            sealer.power.eq(at_border(m, "power_held", self.power)),
        ]
        record_nonces(m, sealer.request, at_border(m, "enable_held", self.enable, reset=True), RESPONSE)
        confirm = at_border(m, "confirm_held", self.confirm)
        given = stream_at_border(m, "given", self.i)

        m.submodules.rows = rows = Fifo(response_layout(config), depth=2 * config.value_rows + 2)
        row = rows.o.payload
        slot = Signal(range(shape.slots))
        final = shape.slots - 1
        first_value = 1 + TEXT_HEADER_BLOCKS
        parts = max(1, config.row_bytes // BLOCK_BYTES)
        head = Cat(row.status | Const(0, 64 - CONFIRM_BITS), confirm, row.key | Const(0, 64))
        value = row.value | Const(0, parts * BLOCK_BITS)
        part = Array((n - first_value) % parts for n in range(shape.slots))[slot]
        moves = Signal()
        m.d.comb += [
            rows.i.valid.eq(given.valid),
            rows.i.payload.eq(given.payload),
            sealer.i.valid.eq(rows.o.valid),
            sealer.i.payload.eq(Mux(slot < first_value, head, value.word_select(part, BLOCK_BITS))),
            moves.eq(sealer.i.valid & sealer.i.ready),
            rows.o.ready.eq(moves & (slot >= first_value) & (part == parts - 1)),
        ]
        with m.If(moves):
            m.d.sync += slot.eq(Mux(slot == final, 0, slot + 1))

        sequence = Signal(SEQUENCE_BITS)
        place = Signal(range(BEAT_BLOCKS), init=1)
        begins = Signal(init=1)
        beat = payload_register(m, self.o.payload, name="beat")
        blocks = [beat.word_select(n, BLOCK_BITS) for n in range(BEAT_BLOCKS)]
        ends = sealer.o.valid & sealer.o.payload.last
        m.d.sync += self.o.valid.eq(sealer.o.valid & ((place == BEAT_BLOCKS - 1) | ends))
        with m.If(sealer.o.valid):
            m.d.sync += [place.eq(place + 1), begins.eq(0)]
            with m.If(begins):
                m.d.sync += beat.eq(Cat(sequence | Const(0, BLOCK_BITS), sealer.o.payload.data))
            with m.Elif(place == 0):
                m.d.sync += beat.eq(sealer.o.payload.data)
            for n, block in enumerate(blocks):
                with m.If(~begins & (place == n) & (place != 0)):
                    m.d.sync += block.eq(sealer.o.payload.data)
        with m.If(ends):
            m.d.sync += [place.eq(1), begins.eq(1), sequence.eq(sequence + 1)]
        return m
