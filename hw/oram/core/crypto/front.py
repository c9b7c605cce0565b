"""The first step of every operation: its key is permuted, and its random bits are drawn."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.delay import delay
from hw.lib.place import Placer
from hw.oram.config import PERMUTATION_ROUNDS
from hw.oram.core.crypto.aes_lane import BLOCK_BITS, KEYS_LAYOUT, ROUND_KEYS, AesLane

#: Bits of an operation's number, the counter of its draws.
_NUMBER_BITS = 64


def front_layout(key_bits: int, draws: int) -> data.StructLayout:
    """Return an operation's permuted key and its draws."""
    return data.StructLayout({"permuted": key_bits, "draw": data.ArrayLayout(BLOCK_BITS, draws)})


class Front(wiring.Component):
    """Permutes keys by a balanced Feistel network of four rounds of AES, and draws from AES in counter mode.

    ``key_bits``: 32 or 64. ``draws``: blocks of random bits of an operation: 1 or 2. ``interval``: cycles
    between operations, at least 1.

    Behaviour
    ---------
    Each block of an operation, four rounds and the draws, has a lane and a cycle of the interval. So
    ceil(blocks / interval) lanes suffice (`lanes`). A round follows the previous one after `turn` cycles, one
    more than a multiple of the interval::

        interval 5, a lane     cycle of the interval  0    1    2    3    4
                               lane 0                 r0   r1   r2   r3   draw
        interval 4, two lanes  lane 0                 r0   r1   r2   r3
                               lane 1                 draw

    The output cannot be stalled: the sender of a key keeps room for its result.
    """

    def __init__(self, *, key_bits: int, draws: int, interval: int, placer: Placer) -> None:
        for name, value, legal in (("key_bits", key_bits, (32, 64)), ("draws", draws, (1, 2))):
            if value not in legal:
                raise InputError(name, value, f"{legal[0]} or {legal[1]}")
        if not isinstance(interval, int) or interval < 1:
            raise InputError("interval", interval, "an integer of at least 1")
        self._key_bits = key_bits
        self._draws = draws
        self._interval = interval
        self._placer = placer
        super().__init__(
            {
                #: ``permutation_keys``, ``draw_keys``: round keys; constant while an operation is in flight.
                #: Draws count from 0 after every reset, so a draw key serves until the next reset.
                "permutation_keys": In(KEYS_LAYOUT),
                "draw_keys": In(KEYS_LAYOUT),
                #: Keys; ready in one cycle of ``interval``, which waits for a key if none is under way.
                "i": In(stream.Signature(key_bits)),
                #: `latency` cycles after the key was taken, as `sim/golden/oram/front.py` defines it.
                "o": Out(stream.Signature(front_layout(key_bits, draws), always_ready=True)),
            }
        )

    @staticmethod
    def lanes(interval: int, draws: int) -> int:
        """Return the number of AES lanes."""
        return -(-(PERMUTATION_ROUNDS + draws) // interval)

    @staticmethod
    def turn(interval: int) -> int:
        """Return the cycles from a round of an operation to its next."""
        return AesLane.LATENCY + (1 - AesLane.LATENCY) % interval

    @staticmethod
    def latency(interval: int) -> int:
        """Return the cycles from a key to its result."""
        return (PERMUTATION_ROUNDS - 1) * Front.turn(interval) + AesLane.LATENCY + 1

    def elaborate(self, platform: Any) -> Module:
        """The output of a lane enters the next round after a fixed time."""
        m = Module()
        interval, rounds = self._interval, PERMUTATION_ROUNDS
        blocks = rounds + self._draws
        last_round_at = (rounds - 1) * self.turn(interval)
        cycle = Signal(range(interval))  # of the interval
        m.d.comb += self.i.ready.eq(cycle == 0)
        valid = [self.i.valid & self.i.ready]
        for n in range(1, self.latency(interval) + 1):
            valid.append(Signal(name=f"valid_{n}"))
            m.d.sync += valid[n].eq(valid[n - 1])
        idle = Signal(init=1)
        m.d.sync += idle.eq(~Cat(valid).any())
        with m.If((cycle != 0) | self.i.valid | ~idle):
            m.d.sync += cycle.eq(Mux(cycle == interval - 1, 0, cycle + 1))
        number = Signal(_NUMBER_BITS)
        m.d.sync += number.eq(number + valid[last_round_at])

        before: Value = self.i.payload
        for lane in range(self.lanes(interval, self._draws)):
            held = range(lane * interval, min((lane + 1) * interval, blocks))
            cell = self._placer.place(m, f"lane_{lane}", "aes_lane", lambda: AesLane(self._placer))
            self._connect_keys(m, lane, cell, held, cycle)
            state = Signal(self._key_bits, name=f"state_{lane}")
            # Cycle of the interval in which a lane's output belongs to the block of cycle 0.
            at_end = AesLane.LATENCY % interval
            inputs = []
            for at, block in enumerate(held):
                if block < rounds:
                    inputs.append(self._round_block(state, block))
                else:
                    inputs.append(Cat(number, Const(block - rounds, BLOCK_BITS - _NUMBER_BITS)))
                    drawn = Signal(BLOCK_BITS, name=f"draw_{block - rounds}", reset_less=True)
                    with m.If(cycle == (at + at_end) % interval):
                        m.d.sync += drawn.eq(cell.o)
                    m.d.comb += self.o.payload.draw[block - rounds].eq(drawn)
            m.d.comb += cell.i.eq(Array(inputs)[cycle] if len(inputs) > 1 else inputs[0])
            if held[0] >= rounds:
                continue
            half = self._key_bits // 2
            entered = delay(m, f"state_{lane}", state, AesLane.LATENCY, reset=False)
            after = Cat(entered[half:] ^ cell.o[:half], entered[:half])
            again = delay(m, f"again_{lane}", after, self.turn(interval) - AesLane.LATENCY, reset=False)
            m.d.comb += state.eq(Mux(cycle == 0, before, again) if len(held) > 1 else before)
            before = again
            if rounds - 1 in held:
                permuted = Signal(self._key_bits, reset_less=True)
                m.d.sync += permuted.eq(after)
                m.d.comb += self.o.payload.permuted.eq(permuted)
        m.d.comb += self.o.valid.eq(valid[-1])
        return m

    def _round_block(self, state: Signal, number: int) -> Value:
        """Return the block that a round encrypts: the low half of the state, and the round's number."""
        half = self._key_bits // 2
        return Cat(state[:half], Const(0, BLOCK_BITS - 8 - half), Const(number, 8))

    def _connect_keys(self, m: Module, lane: int, cell: Any, held: range, cycle: Signal) -> None:
        """Select the round keys of a lane by the block in each round."""
        draws = [at for at, block in enumerate(held) if block >= PERMUTATION_ROUNDS]
        for n in range(ROUND_KEYS):
            chosen = self.draw_keys[n] if draws else self.permutation_keys[n]
            if 0 < len(draws) < len(held):
                # Registered one cycle ahead: it drives every bit of the key.
                is_draw = Signal(name=f"is_draw_{lane}_{n}")
                interval = self._interval
                ahead = [(at + n - 1) % interval for at in draws]
                m.d.sync += is_draw.eq(Cat(cycle == at for at in ahead).any())
                chosen = Mux(is_draw, self.draw_keys[n], self.permutation_keys[n])
            m.d.comb += cell.round_keys[n].eq(chosen)
