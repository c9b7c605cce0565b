"""Score unit: dot products of one or two stationary queries with each key that passes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.lib.memory import uninitialised
from hw.lib.packed import FACTOR_BITS, WORD_BITS, pack, split

#: Values added up in one cycle of the adder tree: two carry chains between registers.
TREE_RADIX = 4


class QueryPlace(data.StructLayout):
    """Where a part of a query lies: ``bank`` (two query tiles, the one in use and the next) and ``part``."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"bank": 1, "part": range(config.folds)})


class QueryPick(data.StructLayout):
    """Which part the multipliers take: ``valid`` and ``place``."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"valid": 1, "place": QueryPlace(config)})


class ScoreUnit(wiring.Component):
    """One or two query rows against one part of a key a cycle.

    Parameters
    ----------
    config
        Shape of the engine.
    rows
        1 or 2.

    Members
    -------
    query : In(D x int8)
        A part of a query, written to ``place`` of the rows whose bit of ``load`` is high.
    place : In(QueryPlace)
    load : In(rows)
    pick : In(QueryPick)
        Parts of keys that come in the next cycle, and until the next pick, meet this part of the queries.
    key : In(D x int8)
    accumulate, first : In(1)
        A part came `first_latency` cycles ago, and it is the first of its key.  Without folds not used.
    o : Out(rows x signed)
        Raw score S of the key whose last part came `latency` cycles ago.

    Behaviour
    ---------
    One part a cycle.  A place may be picked in the cycle after it was loaded.

    Why
    ---
    A key meets both rows, so a multiplier takes the queries of both as one packed factor (`packed`), and the
    first level of the adder tree adds packed words.
    """

    def __init__(self, config: AttentionConfig, *, rows: int) -> None:
        self._config = config
        self._rows = rows
        elements = data.ArrayLayout(signed(8), config.lanes)
        super().__init__(
            {
                "query": In(elements),
                "place": In(QueryPlace(config)),
                "load": In(rows),
                "pick": In(QueryPick(config)),
                "key": In(elements),
                "accumulate": In(1),
                "first": In(1),
                "o": Out(signed(config.score_bits)).array(rows),
            }
        )

    @staticmethod
    def first_latency(config: AttentionConfig) -> int:
        """Cycles from a part of a key to its sum: the products and the levels of the adder tree."""
        levels, values = 0, config.lanes
        while values > 1:
            levels, values = levels + 1, -(-values // TREE_RADIX)
        return 1 + levels

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Cycles from the last part of a key to its score."""
        return ScoreUnit.first_latency(config) + (config.folds > 1)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, lanes = self._config, range(self._config.lanes)
        queries = [self._stored(m, row) for row in range(self._rows)]
        products = []
        for d in lanes:
            elements = [query[d] for query in queries]
            factor = Signal(
                signed(FACTOR_BITS if self._rows == 2 else 8), name=f"factor_{d}", reset_less=True
            )
            with m.If(self.pick.valid):
                m.d.sync += factor.eq(pack(*elements) if self._rows == 2 else elements[0])
            products.append(factor * self.key[d])
        for row, part in enumerate(self._sums(m, products)):
            if config.folds == 1:
                m.d.comb += self.o[row].eq(part)
            else:
                score = Signal(signed(config.score_bits), name=f"score_{row}", reset_less=True)
                with m.If(self.accumulate):
                    m.d.sync += score.eq(Mux(self.first, 0, score) + part)
                m.d.comb += self.o[row].eq(score)
        return m

    def _stored(self, m: Module, row: int) -> list[Value]:
        """Keep a row's queries; give the elements of the part that is picked."""
        config = self._config
        queries = uninitialised(width=config.part_bits, depth=2 * config.folds, ram_style="distributed")
        m.submodules[f"queries_{row}"] = queries
        put, get = queries.write_port(), queries.read_port(domain="comb")
        m.d.comb += [
            put.en.eq(self.load[row]),
            put.addr.eq(_address(config, self.place)),
            put.data.eq(self.query.as_value()),
            get.addr.eq(_address(config, self.pick.place)),
        ]
        return [get.data.word_select(d, 8).as_signed() for d in range(config.lanes)]

    def _sums(self, m: Module, products: list[Value]) -> list[Value]:
        """Add up the products; give a sum for each row."""
        bits = self._config.score_bits
        if self._rows == 1:
            return [_tree(m, "sum", _registered(m, "product", products, bits), bits)]
        words = _registered(m, "product", products, WORD_BITS)
        fields = [split(word) for word in _registered(m, "word", _level(words), WORD_BITS)]
        sums = []
        for row in range(2):
            level = _level([field[row] for field in fields])
            sums.append(_tree(m, f"sum_{row}", _registered(m, f"sum_{row}_0", level, bits), bits))
        return sums


def _address(config: AttentionConfig, place: Any) -> Value:
    return place.bank if config.folds == 1 else Cat(place.bank, place.part)


def _tree(m: Module, name: str, values: list[Value], bits: int) -> Value:
    """Add `TREE_RADIX` values at a time, with a register behind every sum.

    All registers have the ``bits`` of the final sum: additions are modulo, nothing is extended twice.
    """
    level = 0
    while len(values) > 1:
        level += 1
        values = _registered(m, f"{name}_{level}", _level(values), bits)
    return values[0].as_signed()


def _registered(m: Module, name: str, values: list[Value], bits: int) -> list[Value]:
    registers = [Signal(bits, name=f"{name}_{n}", reset_less=True) for n in range(len(values))]
    m.d.sync += [register.eq(value) for register, value in zip(registers, values, strict=True)]
    return list(registers)


def _level(values: list[Value]) -> list[Value]:
    return [_sum(values[first : first + TREE_RADIX]) for first in range(0, len(values), TREE_RADIX)]


def _sum(values: list[Value]) -> Value:
    """Add by halves, so that no carry chain is longer than needed."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return _sum(values[:middle]) + _sum(values[middle:])
