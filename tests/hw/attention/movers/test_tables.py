# amaranth: UnusedElaboratable=no
"""The port of tables: each pass's in order, and descriptors whenever no pass has anything to read."""

import random

import pytest

from hw.attention.movers.tables import TablePort
from hw.attention.walk.descriptor import USED_BYTES
from tests.hw.attention.plain import small
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, Side, Stuck, exchange, seeds
from tests.support.proofs.mutants import mutant

BEAT = 16


def tables(port_type, *, seed, stall, count=12):
    """Ask for tables and descriptors at once; gives whether all words come, in order, and from where."""
    rng = random.Random(seed)
    config = small(alibi=True, paged=True)
    port = port_type(config, data_width=8 * BEAT)
    memory = AxiMemory(port.axi, stall=stall, seed=seed, latency=(1, 9))
    wanted = {name: [] for name in ("bitmaps", "slopes", "pages", "descriptors")}
    passes, places = [], iter(range(1 << 20, 1 << 30, 4096))

    def table(name, present, size):
        """Draw an address, and note the words that lie there."""
        address, length = next(places), size if present else 0
        content = memory.content(address, length)
        wanted[name] += [content[at : at + BEAT] for at in range(0, length, BEAT)]
        return address

    for _ in range(count):
        rows, heads, groups = (rng.choice([0, 0, n]) for n in (1, rng.randint(1, 4), 1))
        passes.append(
            {
                "bitmap": table("bitmaps", rows, 32 * rows),
                "bitmap_rows": rows,
                "slopes": table("slopes", heads, 4 * heads),
                "heads": heads,
                "pages": table("pages", groups, 32 * groups),
                "page_groups": groups,
            }
        )
    fetches = []
    for _ in range(count):
        fetches.append(next(places))
        content = memory.content(fetches[-1], USED_BYTES)
        wanted["descriptors"] += [content[at : at + BEAT] for at in range(0, USED_BYTES, BEAT)]
    sides = {
        "i": Side(port.i, items=passes, stall=stall),
        "fetch": Side(port.fetch, items=fetches, stall=stall),
    }
    for name, words in wanted.items():
        # There is always room for descriptors.
        sides[name] = Side(getattr(port, name), count=len(words), stall=stall * (name != "descriptors"))
    try:
        exchange(port, sides, seed=seed, background=memory.testbenches(), limit=6_000)
    except Stuck:
        return False
    return all(
        word.to_bytes(BEAT, "little").startswith(bytes_there)
        for name, words in wanted.items()
        for word, bytes_there in zip(map(data_of, sides[name].received), words, strict=True)
    )


def data_of(word):
    """Return the bits of a word, with or without what says how many of them there are."""
    return word["data"] if isinstance(word, dict) else word


@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize("stall", STALLS[:3])
def test_tables_of_passes_and_descriptors(stall, seed):
    assert tables(TablePort, seed=seed, stall=stall)


def test_a_descriptor_that_a_table_displaces_is_missed():
    lossy = mutant(TablePort, "self.fetch.ready.eq(go & ~asked.any())", "self.fetch.ready.eq(go)")
    assert not tables(lossy, seed=0, stall=0.0)
