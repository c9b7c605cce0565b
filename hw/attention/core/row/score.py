"""Score unit: dot products of one or two stationary queries with each key that passes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.lib.arithmetic.dot_product import dot_latency, dot_products, factor, factor_bits
from hw.lib.memory import uninitialised


class QueryPlace(data.StructLayout):
    """Where a part of a query lies: ``bank`` (two query tiles, the one in use and the next) and ``part``."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"bank": 1, "part": range(config.folds)})


#: Lanes that hear of a pick from one register: one for all had 1,088 loads.
PICKED_LANES = 8


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
    pick : In(QueryPlace), picked : In(D / 8, rounded up)
        Parts of keys that come in the next cycle, and until the next pick, meet this part of the queries; all
        bits are alike, each for eight lanes.
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
    A key meets both rows, so a multiplier takes the queries of both as one factor (`dot_products`).
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
                "pick": In(QueryPlace(config)),
                "picked": In(-(-config.lanes // PICKED_LANES)),
                "key": In(elements),
                "accumulate": In(1),
                "first": In(1),
                "o": Out(signed(config.score_bits)).array(rows),
            }
        )

    @staticmethod
    def first_latency(config: AttentionConfig) -> int:
        """Cycles from a part of a key to its dot product."""
        return dot_latency(config.lanes)

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Cycles from the last part of a key to its score."""
        return ScoreUnit.first_latency(config) + (config.folds > 1)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, lanes = self._config, range(self._config.lanes)
        queries = [self._stored(m, row) for row in range(self._rows)]
        factors = []
        for d in lanes:
            picked = Signal(signed(factor_bits(self._rows)), name=f"factor_{d}", reset_less=True)
            with m.If(self.picked[d // PICKED_LANES]):
                m.d.sync += picked.eq(factor([query[d] for query in queries]))
            factors.append(picked)
        key = [self.key[d] for d in lanes]
        parts = dot_products(m, factors, key, vectors=self._rows, bits=config.score_bits)
        for row, part in enumerate(parts):
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
            get.addr.eq(_address(config, self.pick)),
        ]
        return [get.data.word_select(d, 8).as_signed() for d in range(config.lanes)]


def _address(config: AttentionConfig, place: Any) -> Value:
    return place.bank if config.folds == 1 else Cat(place.bank, place.part)
