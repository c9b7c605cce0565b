"""Score unit: dot products of one or two stationary queries with each key that passes."""

from collections.abc import Iterable, Iterator
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.lib.arithmetic.adder_tree import adder_tree, tree_levels
from hw.lib.arithmetic.dsp import packed_product
from hw.lib.arithmetic.lanes.placed import dots
from hw.lib.arithmetic.packed import split
from hw.lib.convert import Models
from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised


class QueryPlace(data.StructLayout):
    """Location of a part of a query: ``bank`` (the query tile in use, or the next one) and ``part``."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"bank": 1, "part": range(config.folds)})


#: Multipliers of a cascade, each adding to the word of the one before, a cycle later.  Packed words have room
#: for seven products, and a longer cascade takes more cycles.
_CHAIN = 4


class QueryPick(data.StructLayout):
    """The part for the multipliers: ``valid`` and ``place``."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"valid": 1, "place": QueryPlace(config)})


class ScoreUnit(wiring.Component):
    """One or two query rows against one part of a key a cycle.

    ``rows``: 1 or 2.

    Behaviour
    ---------
    One part a cycle.  A place may be picked in the cycle after it was loaded.

    Why
    ---
    A key meets both rows, so a multiplier takes the queries of both as one packed factor.  The multipliers'
    own adders make the first sums, along cascades. Lane n of a cascade works n cycles later than its first
    lane. Its parts of the key, the queries and the picks are delayed by as much.
    """

    def __init__(self, config: AttentionConfig, *, rows: int) -> None:
        self._config = config
        self._rows = rows
        elements = data.ArrayLayout(signed(8), config.lanes)
        super().__init__(
            {
                #: A part of a query, written to ``place`` of the rows whose bit of ``load`` is high.
                "query": In(elements),
                "place": In(QueryPlace(config)),
                "load": In(rows),
                #: Selects the part of the queries for the parts of keys from this cycle until the next pick.
                "pick": In(QueryPick(config)),
                "key": In(elements),
                #: ``accumulate``, ``first``: a part arrived `first_latency` + 1 cycles ago, and it is the
                #: first of its key.  Unused without folds.
                "accumulate": In(1),
                "first": In(1),
                #: Raw score S of the key whose last part arrived `latency` + 1 cycles ago.
                "o": Out(signed(config.score_bits)).array(rows),
            }
        )

    @staticmethod
    def first_latency(config: AttentionConfig) -> int:
        """Return the cycles from a part of a key to its dot product, without the product's input register."""
        return 2 + _CHAIN + tree_levels(config.lanes // _CHAIN)

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Return the cycles from the last part of a key to its score, less the product's input register."""
        return ScoreUnit.first_latency(config) + (config.folds > 1)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        parts: Iterable[Value] = self._multiplied(m, platform)
        if isinstance(platform, Models):
            parts = self._modelled(m)
        for row, part in enumerate(parts):
            if config.folds == 1:
                m.d.comb += self.o[row].eq(part)
            else:
                score = Signal(signed(config.score_bits), name=f"score_{row}", reset_less=True)
                with m.If(self.accumulate):
                    m.d.sync += score.eq(Mux(self.first, 0, score) + part)
                m.d.comb += self.o[row].eq(score)
        return m

    def _multiplied(self, m: Module, platform: Any) -> Iterator[Value]:
        """Make the chains of multipliers and, row by row, the tree of adders; return the dot products."""
        config = self._config
        stages = [self._stage(m, n) for n in range(_CHAIN)]
        words: list[Value] = []
        for chain in range(config.lanes // _CHAIN):
            word = None
            for n, (key, queries, load) in enumerate(stages):
                word = packed_product(
                    m,
                    platform,
                    f"word_{chain}_{n}",
                    high=queries[0][chain] if self._rows == 2 else Const(0, signed(8)),
                    low=queries[-1][chain],
                    load=load,
                    shared=key[chain],
                    shared_registers=2,
                    cascade=word,
                    ends=n == _CHAIN - 1,
                )
            assert word is not None
            words.append(word)
        high, low = zip(*(split(word) for word in words), strict=True)
        high, low = zip(*(split(word) for word in words), strict=True)
        for row, fields in enumerate((high, low)[-self._rows :]):
            yield adder_tree(m, f"sum_{row}", fields, config.score_bits)

    def _modelled(self, m: Module) -> list[Value]:
        """Place the model of these."""
        config = self._config
        return dots(
            m,
            vector=Value.cast(self.key),
            put=Value.cast(self.query),
            place=_address(config, self.place),
            load=self.load,
            pick=self.pick.valid,
            picked=_address(config, self.pick.place),
            places=1 << 1 + (config.folds - 1).bit_length(),
            latency=self.first_latency(config) + 1,
            bits=config.score_bits,
        )

    def _stage(self, m: Module, n: int) -> tuple[list[Value], list[list[Value]], Value]:
        """Return the operands of lane ``n`` of each cascade: elements of the key, elements of the picked
        queries, and the enable of these.
        """
        config = self._config
        lanes = range(n, config.lanes, _CHAIN)
        given = Cat(*(self.query[d] for d in lanes))
        query = delay(m, f"query_{n}", given, n, reset=False)
        place = delay(m, f"place_{n}", self.place, n, reset=False)
        load = delay(m, f"load_{n}", self.load, n)
        pick = delay(m, f"pick_{n}", self.pick, n)
        picked = []
        for row in range(self._rows):
            queries = uninitialised(width=len(given), depth=2 * config.folds, ram_style="distributed")
            m.submodules[f"queries_{row}_{n}"] = queries
            put, get = ports(queries, domain="comb")
            m.d.comb += [
                put.en.eq(load[row]),
                put.addr.eq(_address(config, place)),
                put.data.eq(query),
                get.addr.eq(_address(config, pick.place)),
            ]
            picked.append([get.data.word_select(chain, 8).as_signed() for chain in range(len(lanes))])
        key = delay(m, f"key_{n}", Cat(*(self.key[d] for d in lanes)), n, reset=False)
        return [key.word_select(chain, 8).as_signed() for chain in range(len(lanes))], picked, pick.valid


def _address(config: AttentionConfig, place: Any) -> Value:
    return place.bank if config.folds == 1 else Cat(place.bank, place.part)
