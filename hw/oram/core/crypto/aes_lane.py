"""AES-128 encryption, a block a cycle (FIPS 197, section 5.1)."""

from functools import partial
from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.lib.place import Placer
from hw.oram.config import BLOCK_BYTES
from hw.oram.core.crypto.sbox import substitute

BLOCK_BITS = 8 * BLOCK_BYTES
#: `ROUND_KEYS`: round keys of AES-128: one before the first round and one for each round. `KEYS_LAYOUT`: all
#: of them in a port.
ROUND_KEYS = 11
KEYS_LAYOUT = data.ArrayLayout(BLOCK_BITS, ROUND_KEYS)


def shift_rows(state: Value) -> Value:
    """Rotate row r of the state left by r columns; its byte (r, c) is byte 4 c + r of the block."""
    return Cat(state.word_select((n + 4 * (n % 4)) % 16, 8) for n in range(16))


def mix_column(column: Value) -> Value:
    """Multiply a column, 4 bytes in a word, by {02} x^0 + {01} x + {01} x^2 + {03} x^3."""
    next_one, next_two, next_three = (column.rotate_right(8 * n) for n in (1, 2, 3))
    pair = column ^ next_one  # {02} a + {03} b = {02} (a + b) + b
    carries = pair.shift_right(7) & 0x01010101
    doubled = (pair & 0x7F7F7F7F).shift_left(1) ^ carries
    doubled ^= carries.shift_left(1) ^ carries.shift_left(3) ^ carries.shift_left(4)
    return (doubled ^ next_one ^ next_two ^ next_three)[:32]


class AesRound(wiring.Component):
    """A round: SubBytes, ShiftRows, MixColumns except in the last round, AddRoundKey.

    ``last``: the tenth round.
    """

    LATENCY: ClassVar = 1

    def __init__(self, *, last: bool) -> None:
        self._last = last
        super().__init__(
            {
                "i": In(BLOCK_BITS),
                "key": In(BLOCK_BITS),
                "o": Out(BLOCK_BITS),  #: One cycle later.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """One stage: SubBytes is one level of logic, MixColumns two."""
        m = Module()
        substituted = Signal(BLOCK_BITS)
        m.d.comb += substituted.eq(substitute(m, "sbox", self.i))
        state = shift_rows(substituted)
        if not self._last:
            mixed = []
            for n in range(4):
                column = Signal(32, name=f"column_{n}")
                m.d.comb += column.eq(state.word_select(n, 32))
                mixed.append(mix_column(column))
            state = Cat(mixed)
        m.d.sync += payload_register(m, self.o).eq(state ^ self.key)
        return m


class AesLane(wiring.Component):
    """Encrypts a block every cycle.

    Behaviour
    ---------
    It never stalls and has no valid signal: its user delays its own by `LATENCY`.
    """

    LATENCY: ClassVar = 1 + (ROUND_KEYS - 1) * AesRound.LATENCY

    def __init__(self, placer: Placer) -> None:
        self._placer = placer
        super().__init__(
            {
                "i": In(BLOCK_BITS),  #: Byte n of the block in bits 8 n to 8 n + 7, as in all blocks here.
                #: Round key r applies to the block of ``r`` cycles ago. The keys are constant while in use,
                #: or follow the blocks where two keys share a lane.
                "round_keys": In(KEYS_LAYOUT),
                "o": Out(BLOCK_BITS),  #: The block of `LATENCY` cycles ago, encrypted.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A chain of rounds."""
        m = Module()
        state: Value = Signal(BLOCK_BITS, name="whitened", reset_less=True)
        m.d.sync += state.eq(self.i ^ self.round_keys[0])
        for n in range(1, ROUND_KEYS):
            last = n == ROUND_KEYS - 1
            cell = "aes_last_round" if last else "aes_round"
            stage = self._placer.place(m, f"round_{n}", cell, partial(AesRound, last=last))
            m.d.comb += [stage.i.eq(state), stage.key.eq(self.round_keys[n])]
            state = stage.o
        m.d.comb += self.o.eq(state)
        return m
