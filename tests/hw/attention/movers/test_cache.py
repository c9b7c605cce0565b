# amaranth: UnusedElaboratable=no
"""Tags, fetches and caches: what is delivered is what memory has, and no byte is fetched twice in vain."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.core.command import NO_KEY
from hw.attention.movers.cache import PartCache
from hw.attention.movers.part_reader import PartReader
from hw.attention.walk.fetch import TileFetch
from hw.attention.walk.tags import CacheTags
from hw.lib.delay import delay
from hw.lib.rows.cutter import RowPart
from tests.hw.attention.plain import PlainCache, decoding, parts, small
from tests.hw.lib.rows.test_rows import row_parts
from tests.support.gateware.streams import STALLS, Side, exchange, seeds


class Cached(wiring.Component):
    """Tags, fetch, and the cache of keys; the ports' parts come from the test, with ``decode`` as late as
    they come from readers.
    """

    def __init__(self, config, *, epoch_bits=12):
        self.config = config
        self.tags = CacheTags(config, epoch_bits=epoch_bits)
        self.fetch = TileFetch(config, index=0)
        self.cache = PartCache(config)
        fetches = self.fetch.k_fetch[0].signature
        super().__init__(
            {
                "i": In(self.tags.i.signature.flip()),
                "tile": Out(self.fetch.tile.signature),
                "values": Out(self.fetch.v.signature),
                "base": In(64).array(config.ports),
                "k_fetch": Out(fetches).array(config.ports),
                "v_fetch": Out(fetches).array(config.ports),
                "port": In(stream.Signature(RowPart(config.part_bits))).array(config.ports),
                "o": Out(self.cache.o.signature),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.tags, m.submodules.fetch, m.submodules.cache = self.tags, self.fetch, self.cache
        connect(m, flipped(self.i), self.tags.i)
        connect(m, self.tags.o, self.fetch.i)
        connect(m, self.fetch.tile, flipped(self.tile))
        connect(m, self.fetch.v, flipped(self.values))
        connect(m, self.fetch.k, self.cache.command)
        connect(m, self.cache.o, flipped(self.o))
        for p, base in enumerate(self.base):
            m.d.comb += [self.fetch.k_base[p].eq(base), self.fetch.v_base[p].eq(base + 2**40)]
            connect(m, self.fetch.k_fetch[p], flipped(self.k_fetch[p]))
            connect(m, self.fetch.v_fetch[p], flipped(self.v_fetch[p]))
            if self.config.decodes:
                part = self.port[p].payload.elements
                m.d.comb += [
                    self.cache.available[p].eq(self.port[p].valid),
                    self.port[p].ready.eq(self.cache.take[p]),
                    self.cache.part[p].eq(delay(m, f"part_{p}", part, PartReader.LATENCY)),
                ]
            else:
                connect(m, flipped(self.port[p]), self.cache.i[p])
        return m


class Requests:
    """Random tiles of one stream in several K/V heads, and all that should come of them."""

    def __init__(self, config, seed, *, count=60, turns=4, wide=True):
        rng = random.Random(seed)
        self.config, self.rng = config, rng
        self.items, self.tiles, self.expected, self.values = [], [], [], []
        ports = config.ports
        self.reads = [[[], []] for _ in range(ports)]  # of keys, of values: (address, length, rows)
        self.port_parts = [[] for _ in range(ports)]
        self.base = [rng.getrandbits(62) for _ in range(ports)]
        self.fetched = self.distinct = 0
        self._cache = PlainCache()
        for turn in range(turns):
            self._turn(turn, count // turns, wide)

    def _turn(self, turn, count, wide):
        """One K/V head: tiles in ever the same memory, until the caches are cleared."""
        config, rng = self.config, self.rng
        key_units, value_units = (
            config.key_units(16 * rng.randint(1, config.max_head_dim // 16)) for _ in range(2)
        )
        units_of_part = config.lanes // 16
        last_key, last_value = (-(-units // units_of_part) - 1 for units in (key_units, value_units))
        slots = config.cached_keys // config.tile_keys // (max(last_key, last_value) + 1)
        ring = wide and rng.random() < 0.5
        if ring:
            slots = 1 << slots.bit_length() >> 1
        source = {
            "k_offset": rng.getrandbits(40),
            "v_offset": rng.getrandbits(40),
            "key_units": key_units,
            "value_units": value_units,
            "last_key_part": last_key,
            "last_value_part": last_value,
            "slots": slots,
            "ring": int(ring),
            **(dict.fromkeys(("decode", "again", "keep"), 0) if config.decodes else {}),
        }
        content, seen = {}, {}
        for n in range(count):
            dummy = rng.random() < 0.1
            tile = rng.randrange(max(1, slots) * 2 if wide else max(1, slots))
            asked = range(1) if dummy else self._asked(seen.get(tile), wide)
            lead, keys = asked[0], len(asked)
            clear = n == 0
            if clear:
                self._cache = PlainCache()
            held, store = (0, False) if dummy else self._cache.take(tile, asked, slots, ring)
            if not dummy:
                seen.setdefault(tile, set()).update(asked)
            command = {
                "first": NO_KEY if dummy else tile * config.tile_keys + lead,
                "last_index": keys - 1,
                "opens": rng.getrandbits(1),
                "closes": rng.getrandbits(1),
                "dummy": int(dummy),
                "last_key_part": last_key,
                "last_value_part": last_value,
                **({"keep": 0} if config.decodes else {}),
            }
            self.tiles.append(command)
            place = {"tile": tile, "lead": lead, "last": asked[-1]}
            self.items.append(place | {"clear": int(clear), "command": command, "source": source})
            self.values.append((lead, keys, 0 if dummy else held, int(store), int(dummy), last_value))
            for key in asked:
                if dummy:
                    self.expected += [None] * (last_key + 1)
                    continue
                row = content.setdefault((tile, key), rng.randbytes(16 * key_units))
                self.expected += parts(config, row)
                if key >= lead + held:
                    self.port_parts[key % config.ports] += row_parts(row, config.lanes)
            self._reads(source, tile, asked[held:], dummy)
        self.distinct += sum(map(len, seen.values()))

    def _asked(self, before, wide):
        """Draw keys of a tile: unless ``wide``, from one asked for ``before`` on, or from right behind."""
        rng, size = self.rng, self.config.tile_keys
        starts, edges = range(size), {0}
        if before:
            edges = {min(before) - 1, min(before), max(before) + 1}
            if not wide:
                starts = range(min(before), min(max(before) + 2, size))
        lead = rng.choice([rng.choice(starts), *sorted(edges & {*starts})])
        return range(lead, rng.choice([size, rng.randint(lead + 1, size)]))

    def _reads(self, source, tile, keys, dummy):
        config = self.config
        ports = config.ports
        if dummy:
            return
        self.fetched += len(keys)
        for p in range(ports):
            rows = [(tile * config.tile_keys + key) // ports for key in keys if key % ports == p]
            if not rows:
                continue
            assert rows == list(range(rows[0], rows[-1] + 1))
            for side, name in enumerate(("key", "value")):
                units = source[f"{name}_units"]
                address = self.base[p] + (2**40 if side else 0) + source[f"{'kv'[side]}_offset"]
                self.reads[p][side].append(
                    {
                        "address": (address + rows[0] * 16 * units) % 2**64,
                        "length": len(rows) * units,
                        **({} if config.decodes else {"rows": {"rows": len(rows), "units": units}}),
                    }
                )


def run(config, requests, *, stall=0.0, seed=0, epoch_bits=12):
    """Check tiles, commands, and every part of the keys."""
    dut = Cached(config, epoch_bits=epoch_bits)
    sides = {
        "i": Side(dut.i, items=requests.items, stall=stall),
        "tile": Side(dut.tile, count=len(requests.tiles), stall=stall),
        "values": Side(dut.values, count=len(requests.tiles), stall=stall),
        "o": Side(dut.o, count=len(requests.expected), stall=stall),
    }
    for p in range(config.ports):
        k_reads, v_reads = requests.reads[p]
        sides[f"k{p}"] = Side(dut.k_fetch[p], count=len(k_reads), stall=stall)
        sides[f"v{p}"] = Side(dut.v_fetch[p], count=len(v_reads), stall=stall)
        sides[f"port{p}"] = Side(dut.port[p], items=requests.port_parts[p], stall=stall)

    async def bases(ctx):
        for p, base in enumerate(requests.base):
            ctx.set(dut.base[p], base)
        await ctx.tick()

    exchange(dut, sides, seed=seed, background=[bases])
    assert sides["tile"].received == requests.tiles
    for got, want in zip(sides["o"].received, requests.expected, strict=True):
        assert want is None or got == want
    for p, (k_reads, v_reads) in enumerate(requests.reads):
        assert sides[f"k{p}"].received == k_reads
        assert sides[f"v{p}"].received == v_reads
    names = ("lead", "keys", "held", "store", "dummy", "last_part")
    assert [tuple(part[name] for name in names) for part in sides["values"].received] == requests.values
    return sides


@pytest.mark.sample(2)
@pytest.mark.parametrize("ports", [1, 2, 4])
@pytest.mark.parametrize("cached", [0, 64, 256])
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_random_tiles(ports, cached, seed):
    rng = np.random.default_rng([ports, cached, seed])
    config = small(
        lanes=int(rng.choice([16, 32])),
        folds=int(rng.integers(1, 5)),
        ports_per_stream=ports,
        cached_keys=cached,
    )
    requests = Requests(config, seed, count=18, turns=2)
    run(config, requests, stall=float(rng.choice(STALLS[:3])), seed=seed)


@pytest.mark.parametrize("seed", seeds(1, 6))
def test_what_fits_is_fetched_once(seed):
    config = small(lanes=16, folds=2, ports_per_stream=2, cached_keys=256)
    requests = Requests(config, seed, wide=False)
    assert requests.fetched == requests.distinct  # in the plain model, which the reads are compared with
    run(config, requests, seed=seed)


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_turns_wrap(seed):
    """Tags of a turn long ago do not come back with its number."""
    config = small(lanes=16, folds=1, cached_keys=64)
    run(config, Requests(config, seed, count=60, turns=12), seed=seed, epoch_bits=2)


@pytest.mark.sample(2)
@pytest.mark.parametrize("ports", [1, 4])
@pytest.mark.parametrize("stall", STALLS[:3])
@pytest.mark.parametrize("seed", seeds(1, 6))
def test_parts_that_come_late(ports, stall, seed):
    config = decoding(ports_per_stream=ports, lanes=16 << seed % 2)
    run(config, Requests(config, seed, count=24, turns=3), stall=stall, seed=seed)


@pytest.mark.parametrize(("cached", "decode"), [(0, False), (64, False), (64, True)])
def test_a_part_a_cycle(cached, decode):
    """Stored, then replayed, then longer than before, across tiles: no gap."""
    shape = {"lanes": 16, "folds": 2, "cached_keys": cached, "ports_per_stream": 1}
    config = decoding(**shape) if decode else small(**shape)
    requests = Requests(config, 5, count=12, turns=1)
    cycles = run(config, requests)["o"].cycles
    short = sum(max(0, 3 - (item["command"]["last_index"] + 1)) for item in requests.items)
    assert cycles[-1] - cycles[0] + 1 <= len(requests.expected) + (3 * short if cached else 0)
