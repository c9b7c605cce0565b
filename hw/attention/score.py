"""Scores: the dot product of a stationary query with each passing key, scaled to log2 units."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import LOGIT_BITS, MULTIPLIER_BITS, SHIFT_BITS, AttentionConfig
from hw.lib.fixed import floor_shift, saturate

#: Values added up in one cycle of the adder tree: two carry chains between registers.
TREE_RADIX = 4


class ScoreUnit(wiring.Component):
    """One query row against one key a cycle.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    query : In(D x int8)
        A row for the waiting query register, taken when ``load`` is high.
    load : In(1)
    swap : In(1)
        The waiting query becomes the active one: keys that come in the next cycle meet it.
    key : In(D x int8)
    multiplier : In(17)
        Of the key that came `scale_latency` cycles ago.
    shift : In(6)
        Of the key that came a cycle before that.
    logit : Out(signed(24))
        t of the key that came `latency` cycles ago.

    Behaviour
    ---------
    One key a cycle, latency `latency`.  ``t = sat24((S * multiplier + 2^(shift-1)) >> shift)``.

    Why
    ---
    The scale is taken where it is used, so that its delay is built once for all rows.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        elements = data.ArrayLayout(signed(8), config.head_dim)
        super().__init__(
            {
                "query": In(elements),
                "load": In(1),
                "swap": In(1),
                "key": In(elements),
                "multiplier": In(MULTIPLIER_BITS),
                "shift": In(SHIFT_BITS),
                "logit": Out(signed(LOGIT_BITS)),
            }
        )

    @staticmethod
    def scale_latency(config: AttentionConfig) -> int:
        """Cycles from a key to its raw score: the products and the levels of the adder tree."""
        levels, values = 0, config.head_dim
        while values > 1:
            levels, values = levels + 1, -(-values // TREE_RADIX)
        return 1 + levels

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Cycles from a key to its logit: to the raw score, then product, shift, round and clamp."""
        return ScoreUnit.scale_latency(config) + 3

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        lanes = range(self._config.head_dim)
        waiting = [Signal(signed(8), name=f"waiting_{d}", reset_less=True) for d in lanes]
        active = [Signal(signed(8), name=f"active_{d}", reset_less=True) for d in lanes]
        with m.If(self.load):
            m.d.sync += [waiting[d].eq(self.query[d]) for d in lanes]
        with m.If(self.swap):
            m.d.sync += [active[d].eq(waiting[d]) for d in lanes]

        products: list[Value] = [active[d] * self.key[d] for d in lanes]
        score = _registered_tree(m, products, self._config.score_bits)

        product = Signal(signed(self._config.score_bits + MULTIPLIER_BITS), reset_less=True)
        halves = Signal(signed(len(product) + 1), reset_less=True)
        m.d.sync += [
            product.eq(score * self.multiplier),
            # The bit below the result is kept: it rounds in the next cycle.
            halves.eq(floor_shift(Cat(0, product).as_signed(), self.shift)),
            self.logit.eq(saturate((halves >> 1) + halves[0], signed(LOGIT_BITS))),
        ]
        return m


def _registered_tree(m: Module, values: list[Value], bits: int) -> Value:
    """Register ``values``, then add `TREE_RADIX` of them at a time, with a register behind every sum.

    All registers have the ``bits`` of the final sum: additions are modulo, nothing is extended twice.
    """
    level = 0
    while True:
        registers = []
        for n, value in enumerate(values):
            register = Signal(bits, name=f"sum_{level}_{n}", reset_less=True)
            m.d.sync += register.eq(value)
            registers.append(register)
        if len(registers) == 1:
            return registers[0].as_signed()
        values = [
            _sum(registers[first : first + TREE_RADIX]) for first in range(0, len(registers), TREE_RADIX)
        ]
        level += 1


def _sum(values: list[Value]) -> Value:
    """Add by halves, so that no carry chain is longer than needed."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return _sum(values[:middle]) + _sum(values[middle:])
