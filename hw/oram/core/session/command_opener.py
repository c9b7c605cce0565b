"""Opens commands: from sealed records to inputs of the position map and the value RAM."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.oram.config import BEAT_BYTES, BLOCK_BYTES, OramConfig
from hw.oram.core.crypto.aes_lane import BLOCK_BITS, KEYS_LAYOUT
from hw.oram.core.crypto.config import power_layout
from hw.oram.core.crypto.page_open import PageOpen
from hw.oram.core.layouts import BEAT_BITS, Code, command_layout
from hw.oram.core.session.record import BEAT_BLOCKS, COMMAND, record_nonces, record_shape
from hw.oram.core.stage.layouts import value_write_layout


class CommandOpener(wiring.Component):
    """Opens commands in order.

    Behaviour
    ---------
    One block a cycle, whatever its content; the record's header and the padding of its last beat are skipped.
    """

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        self._shape = record_shape(config)
        super().__init__(
            {
                #: ``round_keys``, ``power``: of the session's key; as in `PageOpen`.
                "round_keys": In(KEYS_LAYOUT),
                "power": In(power_layout(self._shape)),
                "enable": In(1),  #: The keys are valid.
                #: Records, at least ``config.interval`` cycles apart, of at most four beats; taken at once.
                "i": In(stream.Signature(BEAT_BITS)),
                #: `latency` cycles after the record's first beat was offered. Operation numbers wrap. A
                #: command with a wrong tag is ``rejected``, and its key and code are 0. One with an unknown
                #: code or a key of too many bits is ``malformed``.
                "command": Out(stream.Signature(command_layout(config), always_ready=True)),
                #: Rows of the value, before the command.
                "value": Out(stream.Signature(value_write_layout(config), always_ready=True)),
            }
        )

    #: Cycles from the verdict to the command.
    _AFTER: ClassVar = 1

    @staticmethod
    def latency(config: OramConfig) -> int:
        """Return the cycles from a record's first beat to the command; the header's block takes one."""
        last_block = record_shape(config).slots
        return Fifo.LATENCY + last_block + PageOpen.VERDICT_LATENCY + CommandOpener._AFTER

    def elaborate(self, platform: Any) -> Module:
        """Blocks are decrypted; the first text block waits for the verdict, the others are values."""
        m = Module()
        config, shape = self._config, self._shape
        m.submodules.open = opener = PageOpen(shape, self._placer)
        m.d.comb += [opener.round_keys.eq(self.round_keys), opener.power.eq(self.power)]
        record_nonces(m, opener.request, self.enable, COMMAND)

        m.submodules.beats = beats = Fifo(BEAT_BITS, depth=2 * config.command_bytes // BEAT_BYTES)
        connect(m, flipped(self.i), beats.i)
        place = Signal(range(config.command_bytes // BLOCK_BYTES))
        lane = place[: BEAT_BLOCKS.bit_length() - 1]
        sealed = (place != 0) & (place <= shape.slots)
        moves = Signal()
        m.d.comb += [
            opener.i.valid.eq(beats.o.valid & sealed),
            opener.i.payload.eq(beats.o.payload.word_select(lane, BLOCK_BITS)),
            moves.eq(beats.o.valid & (opener.i.ready | ~sealed)),
            beats.o.ready.eq(moves & (lane == BEAT_BLOCKS - 1)),
        ]
        with m.If(moves):
            m.d.sync += place.eq(place + 1)
            with m.If(place == config.command_bytes // BLOCK_BYTES - 1):
                m.d.sync += place.eq(0)

        # The text.
        slot = Signal(range(shape.slots))
        arrived = Signal(config.operation_bits)
        number = Signal(config.operation_bits)
        text = opener.o.payload.data
        with m.If(opener.o.valid):
            m.d.sync += slot.eq(slot + 1)
            with m.If(opener.o.payload.last):
                m.d.sync += [slot.eq(0), arrived.eq(arrived + 1)]
        asked = data.StructLayout({"code": 8, "key": 64})
        waits = PageOpen.VERDICT_LATENCY + shape.slots
        m.submodules.waiting = waiting = Fifo(asked, depth=-(-waits // config.interval) + 1)
        m.d.comb += [
            waiting.i.valid.eq(opener.o.valid & (slot == 1)),
            waiting.i.payload.code.eq(text[:8]),
            waiting.i.payload.key.eq(text[64:]),
            waiting.o.ready.eq(opener.verdict.valid),
        ]
        command = Signal(command_layout(config), reset_less=True)
        genuine, code, key = opener.verdict.payload, waiting.o.payload.code, waiting.o.payload.key
        m.d.sync += [
            self.command.valid.eq(opener.verdict.valid),
            command.operation.eq(number),
            command.rejected.eq(~genuine),
            command.malformed.eq(genuine & ((code > max(Code)) | key[config.key_bits :].any())),
            command.code.eq(code & genuine.replicate(len(code))),
            command.key.eq(key & genuine.replicate(len(key))),
        ]
        m.d.comb += self.command.payload.eq(command)
        with m.If(opener.verdict.valid):
            m.d.sync += number.eq(number + 1)

        self._values(m, opener.o.valid & (slot > 1), text, arrived, opener.o.payload.last)
        return m

    def _values(self, m: Module, valid: Value, text: Value, operation: Signal, last: Value) -> None:
        """Join blocks to rows, or cut a row out of a block."""
        config = self._config
        blocks = max(1, config.row_bytes // BLOCK_BYTES)
        write = self.value.payload
        row: Value = text[: 8 * config.row_bytes]
        whole: Value = valid
        if blocks > 1:
            held = Signal((blocks - 1) * BLOCK_BITS, reset_less=True)
            part = Signal(range(blocks))
            row = Cat(held, text)
            whole = valid & (part == blocks - 1)
            with m.If(valid):
                m.d.sync += [held.eq(row[BLOCK_BITS:]), part.eq(part + 1)]
        number = Signal(range(max(2, config.value_rows)))
        m.d.comb += [
            self.value.valid.eq(whole),
            write.operation.eq(operation),
            write.row.eq(number),
            write.data.eq(row),
        ]
        with m.If(whole):
            m.d.sync += number.eq(number + 1)
            with m.If(last):
                m.d.sync += number.eq(0)
