"""Round keys of AES-128 from a key, and one block encrypted with it."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.oram.core.crypto.aes_lane import BLOCK_BITS, KEYS_LAYOUT, ROUND_KEYS, mix_column, shift_rows
from hw.oram.core.crypto.sbox import substitute

_WORD_BITS = 32


class KeySchedule(wiring.Component):
    """Expands a key (FIPS 197, section 5.2), and encrypts a block with it at the same time.

    Behaviour
    ---------
    Eight cycles a round with four S-boxes: a word of the round key and the four columns of the state pass
    through them in sequence.
    """

    #: Cycles of a round: one to load, five through the S-boxes, one for the key, one for the state.
    _STEPS: ClassVar = 8
    LATENCY: ClassVar = 1 + _STEPS * (ROUND_KEYS - 1)

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),  #: Takes ``key`` and ``block``, and abandons work in progress.
                "key": In(BLOCK_BITS),
                "block": In(BLOCK_BITS),
                "round_keys": Out(KEYS_LAYOUT),
                #: The encrypted block. For a block of zeros it is GCM's hash key (H in SP 800-38D).
                "encrypted": Out(BLOCK_BITS),
                #: High for one cycle, `LATENCY` cycles after ``start``: all results are valid until the next
                #: ``start``.
                "done": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Round keys shift through a chain of registers; the newest is the last."""
        m = Module()
        keys = [Signal(BLOCK_BITS, name=f"key_{n}", reset_less=True) for n in range(ROUND_KEYS)]
        state = Signal(BLOCK_BITS, reset_less=True)
        m.d.comb += [self.round_keys.eq(Cat(keys)), self.encrypted.eq(state)]
        current = keys[-1]

        busy = Signal()
        step = Signal(range(self._STEPS))
        rounds_left = Signal(range(ROUND_KEYS))
        constant = Signal(8, reset_less=True)
        waiting, substituted = (
            Signal(5 * _WORD_BITS, name=name, reset_less=True) for name in ("waiting", "substituted")
        )
        looked_up = substitute(m, "sbox", waiting[:_WORD_BITS])
        m.d.sync += [
            self.done.eq(0),
            waiting.eq(waiting.shift_right(_WORD_BITS)),
        ]
        with m.If((step >= 1) & (step <= 5)):
            m.d.sync += substituted.eq(Cat(substituted[_WORD_BITS:], looked_up))

        with m.If(busy):
            m.d.sync += step.eq(step + 1)
            with m.If(step == 0):
                m.d.sync += waiting.eq(Cat(current[-_WORD_BITS:].rotate_right(8), shift_rows(state)))
            with m.If(step == self._STEPS - 2):
                word = substituted[:_WORD_BITS] ^ constant
                words = []
                for n in range(4):
                    word = word ^ current.word_select(n, _WORD_BITS)
                    words.append(word)
                m.d.sync += [
                    Cat(keys).eq(Cat(keys[1:], *words)),
                    constant.eq((constant << 1) ^ Mux(constant[7], 0x1B, 0)),
                ]
            with m.If(step == self._STEPS - 1):
                columns = [substituted.word_select(n + 1, _WORD_BITS) for n in range(4)]
                last = rounds_left == 1
                mixed = Mux(last, Cat(columns), Cat(mix_column(column) for column in columns))
                m.d.sync += [
                    state.eq(mixed ^ current),
                    rounds_left.eq(rounds_left - 1),
                    busy.eq(~last),
                    self.done.eq(last),
                ]
        with m.If(self.start):
            m.d.sync += [
                current.eq(self.key),
                state.eq(self.key ^ self.block),
                constant.eq(1),
                step.eq(0),
                rounds_left.eq(ROUND_KEYS - 1),
                busy.eq(1),
                self.done.eq(0),
            ]
        return m
