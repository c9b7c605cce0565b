# amaranth: UnusedElaboratable=no
"""Attention movers: which tiles, which rows of which port, what is held, and that no part is lost."""

from __future__ import annotations

import pytest
from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal, signed

from hw.attention.config import KEY_BITS, AttentionConfig
from hw.attention.movers.cache import _DECODE_PLACES, _PLACES, PartCache
from hw.attention.walk.fetch import port_share
from hw.attention.walk.job_setup import tile_shape
from hw.attention.walk.layouts import KeyPass
from hw.attention.walk.tags import CacheTags
from hw.attention.walk.tiles import tile_range, within
from tests.formal.stream_properties import free_input
from tests.support.proofs.formal import (
    PropertyFailure,
    bounded,
    check,
    constant,
    cover,
    free,
    prove,
    reach,
    suppose,
)
from tests.support.proofs.mutants import mutant


def small(**changes):
    fields = {"rows": 2, "lanes": 16, "tile_keys": 16, "folds": 1, "ports_per_stream": 1, "cached_keys": 32}
    return AttentionConfig(**(fields | changes))


class RangeSpec(Elaboratable):
    """A tile is listed exactly when it has keys of the stream in the range; the first and last are known."""

    def __init__(self, config, index, function=tile_range):
        self.config, self.index, self.function = config, index, function

    def elaborate(self, platform):
        m = Module()
        config = self.config
        given = Signal(KeyPass(config), init={"none": 1})
        following = Signal(KeyPass(config))
        key = Signal(KEY_BITS)  # any of the head
        free(m, following, key)
        m.d.sync += given.eq(following)
        suppose(m, (given.end <= 65536) & (given.none | (given.first < given.end)), "a range")
        first, first_index, last, last_index, nothing = self.function(config, self.index, given)
        streams = config.stream_bits
        tile, index = key >> (streams + config.index_bits), (key >> streams)[: config.index_bits]
        begin = tile << (streams + config.index_bits)
        after = begin + config.tile_span
        low, high = Mux(given.first > begin, given.first, begin), Mux(given.end < after, given.end, after)
        own = low + (self.index - low)[:streams]  # the stream's first key from `low` on
        listed = ~nothing & (tile >= first) & (tile <= last)
        check(
            m,
            listed == (~given.none & (own < high)),
            "a tile is listed exactly when the stream has keys of the range in it",
        )
        check(m, nothing | (last >= first), "there is a tile unless there is nothing")
        mine = key[:streams] == self.index if streams else Const(1)
        with m.If(mine & ~given.none & (key >= given.first) & (key < given.end)):
            with m.If(key < given.first + config.streams):
                check(m, (tile == first) & (index == first_index), "the first key is known")
            with m.If(key + config.streams >= given.end):
                check(m, (tile == last) & (index == last_index), "the last key is known")
        reach(m, listed & (first_index != 0), "a tile is listed from a key within it on")
        return m


@pytest.mark.parametrize(("streams", "tile_keys"), [(1, 16), (2, 64), (4, 16), (16, 128)])
def test_tile_range(streams, tile_keys):
    config = small(streams=streams, tile_keys=tile_keys, cached_keys=0)
    for index in sorted({0, streams // 2, streams - 1}):
        prove(RangeSpec(config, index), depth=1)
    if streams == 4:
        cover(RangeSpec(config, 1), depth=3)


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("given.end - 1 - index", "given.end - index", "the last key is known"),
        ("config.streams - 1 - index", "config.streams - 2 - index", "keys of the range in it"),
        ("first >> bits, first[:bits]", "first >> bits, given.first[:bits]", "the first key is known"),
        ("| (last < first)", "| (last < 0)", "unless there is nothing"),
    ],
)
def test_tile_range_bug_is_found(right, wrong, found):
    wrong = mutant(tile_range, right, wrong)
    with pytest.raises(PropertyFailure, match=found):
        prove(RangeSpec(small(streams=2), 1, wrong), depth=2)


class WithinSpec(Elaboratable):
    """Bit n says that n is within the range."""

    def __init__(self, config, width):
        self.config, self.width = config, width

    def elaborate(self, platform):
        m = Module()
        bits = len(Signal(tile_shape(self.config))) + 2
        first, last = (Signal(signed(bits), name=name) for name in ("first", "last"))
        free(m, first, last)
        place = Signal(range(self.width))
        free(m, place)
        found = within(first, last, width=self.width)
        inside = (first <= place) & (place <= last)
        check(m, found.bit_select(place, 1) == inside, "a bit says what it should")
        return m


def test_within():
    prove(WithinSpec(small(streams=16, tile_keys=128, cached_keys=0), 8), depth=1)


class ShareSpec(Elaboratable):
    """Key j of a tile is one of a port's rows exactly when it is the port's, and not held."""

    def __init__(self, config, port):
        self.config, self.port = config, port

    def elaborate(self, platform):
        m = Module()
        config = self.config
        held, keys = Signal(config.index_bits + 1), Signal(config.index_bits + 1)
        key = Signal(config.index_bits)
        free(m, held, keys, key)
        suppose(m, (keys <= config.tile_keys) & (held <= keys), "a tile")
        skips, count = port_share(config, held, keys, self.port)
        ports = config.ports.bit_length() - 1
        row = key >> ports
        first = (held >> ports) + skips
        fetched = (key >= held) & (key < keys)
        check(m, count >= 0, "no port has less than nothing")
        with m.If(key[:ports] == self.port if ports else Const(1)):
            check(m, fetched == ((row >= first) & (row < first + count)), "each key is fetched once")
        return m


@pytest.mark.parametrize("ports", [1, 2, 4, 16])
def test_port_share(ports):
    for port in sorted({0, ports // 2, ports - 1}):
        prove(ShareSpec(small(ports_per_stream=ports), port), depth=1)


class TagsSpec(Elaboratable):
    """Any requests: a key that is said to be held was stored there since the last clear, and still is."""

    def __init__(self, cls=CacheTags):
        self.config = small(streams=16)
        self.dut = cls(self.config, epoch_bits=2)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        free_input(m, dut.i, "request")
        free(m, dut.o.ready)
        given, o = dut.i.payload, dut.o.payload
        request = o.request
        slots = self.config.cached_keys // self.config.tile_keys
        tile, index = Signal(tile_shape(self.config)), Signal(self.config.index_bits)  # any key
        ring = Signal()
        constant(m, tile, index, ring)
        suppose(m, given.lead <= given.last, "a request for keys")
        suppose(m, (given.source.slots == slots) & (given.source.ring == ring), "a geometry")
        slot = Mux(ring, tile % slots, tile)
        stored = Signal()
        before = stored & ~request.clear
        with m.If(dut.o.valid & ~request.command.dummy):
            check(m, (request.lead <= o.held) & (o.held <= request.last + 1), "held are leading keys")
            check(m, o.store == (ring | (request.tile < slots)), "what has a slot is stored")
            with m.If((request.tile == tile) & (request.lead <= index) & (index < o.held)):
                check(m, before, "what is held was stored")
            reach(m, (o.held > request.lead) & (request.lead > 0), "keys within a tile are held")
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += stored.eq(before)
            with m.If(o.store & (o.slot == slot) & (o.held <= index) & (index <= request.last)):
                m.d.sync += stored.eq(request.tile == tile)
        return m


def test_what_is_held_was_stored():
    """For three requests in a row, without a reset: that leaves tags, which a clear then makes old."""
    bounded(TagsSpec(), depth=13, reset="low")
    cover(TagsSpec(), depth=10)


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("(start <= lead) &", "", "what is held was stored"),
        ("& (lead <= known)", "", "held are leading keys"),
        ("(tag.epoch == epoch) &", "", "what is held was stored"),
        ("joins & (known >= asked)", "known >= asked", "what is held was stored"),
        ("Mux(joins, start, lead)", "Mux(same, start, lead)", "what is held was stored"),
    ],
)
def test_bug_of_the_tags_is_found(right, wrong, found):
    with pytest.raises(PropertyFailure, match=found):
        bounded(TagsSpec(mutant(CacheTags, right, wrong)), depth=12, reset="low", solver="sat")


class CacheSpec(Elaboratable):
    """Free neighbours; whatever they do, a part finds a place, and what is offered stays."""

    def __init__(self, cls=PartCache, config=None):
        self.config = config or small()
        self.dut = cls(self.config)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        free_input(m, dut.command, "command")
        if self.config.decodes:
            free(m, dut.available, dut.part)
            # Too many places for induction to find out itself, and the queue's own proof has it.
            suppose(m, dut.o.valid == (dut.level != 0), "the queue is empty when it holds nothing")
            suppose(m, ~dut.lost | (dut.level == _DECODE_PLACES), "and full when it holds all it can")
        else:
            free_input(m, dut.i[0], "i")
        free(m, dut.o.ready)  # that the places keep the stream's rule is the queue's own proof
        check(m, ~dut.lost, "every part finds a place")
        flying = sum(dut.under_way[n] for n in range(len(dut.under_way)))
        places = _DECODE_PLACES if self.config.decodes else _PLACES
        check(m, dut.free + flying + dut.level == places, "places are free, taken, or promised")
        reach(m, dut.free == 0, "all places are promised or taken")
        return m


def test_no_part_is_lost():
    prove(CacheSpec(), depth=2)
    cover(CacheSpec(), depth=14)


def test_no_part_that_comes_late_is_lost():
    decodes = small(streams=2, merge_lanes=2, port_bits=128, decode=True)
    prove(CacheSpec(config=decodes), depth=2)
    cover(CacheSpec(config=decodes), depth=24)


def test_lost_part_is_found():
    with pytest.raises(PropertyFailure, match="place"):
        prove(CacheSpec(mutant(PartCache, "room.eq(self.free != 0)", "room.eq(1)")), depth=2)
