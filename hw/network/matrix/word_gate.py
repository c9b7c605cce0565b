"""The word gate: requests follow the words that another core, or the own one, writes to the scratchpad."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.packed_sum import with_carry
from hw.network.commands import Core, Follow

#: Cores whose words are counted.
CORES = len(Core)
#: Bits of a count of words: counts are compared modulo 2^20.
COUNT_BITS = 20
#: Bits of a number of requests of a tile, and of tiles.
REQUEST_BITS = 16


class FollowFields(data.StructLayout):
    """Which words a command's first requests wait for.

    Request ``tile * per_tile + n`` waits until core ``core`` has written
    ``first + tile * tile_step + n * step + 1`` words.  All requests behind ``tiles`` tiles are free.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "core": range(CORES),
                "first": COUNT_BITS,
                "step": COUNT_BITS,
                "tile_step": COUNT_BITS,
                "per_tile": REQUEST_BITS,  #: At least 1.
                "tiles": REQUEST_BITS,
            }
        )


def follow_fields(follow: Follow | None) -> dict[str, int]:
    """Return the fields of a command that follows, or of one that does not: ``None``."""
    names = FollowFields().members
    if follow is None:
        return dict.fromkeys(names, 0)
    wraps = ("first", "step", "tile_step")
    return {
        name: int(getattr(follow, name)) % (1 << COUNT_BITS if name in wraps else 1 << 64) for name in names
    }


def count_words(m: Module, *, clear: Value, written: Value) -> Signal:
    """Count the words that a core writes, from ``clear`` on."""
    count = Signal(COUNT_BITS, name="words_written")
    m.d.sync += count.eq(Mux(clear, 0, count + written))
    return count


class WordGate(wiring.Component):
    """Compares the count of a core's words with the count that the next request needs.

    Behaviour
    ---------
    A request a cycle, each `LATENCY` cycles after its word is counted.  After ``start`` requests wait `START`
    cycles, or none without tiles.  A core is at most 2^19 - 1 words away from what a request needs.
    """

    #: From a count to ``go``: counted, compared.
    LATENCY = 2
    #: From ``start`` to the first ``go``, at the earliest: fields, count, difference.
    START = 3

    def __init__(self) -> None:
        super().__init__(
            {
                "counts": In(COUNT_BITS).array(CORES),  #: Words of each core, which grow by one at most.
                "start": In(1),  #: The next request is the first of a command.
                "follow": In(FollowFields()),  #: With ``start``.
                "taken": In(1),  #: A request is issued; only with ``go``.
                "go": Out(1),  #: The next request may be issued.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count -> lead over the next request's need -> sign."""
        m = Module()
        core = Signal(range(CORES), reset_less=True)
        first, less, tile_less = (
            Signal(COUNT_BITS, name=name, reset_less=True) for name in ("first", "less", "tile_less")
        )
        count = Signal(COUNT_BITS, reset_less=True)
        before = Signal(reset_less=True)  # the last count's lowest bit
        starting = Signal(self.START - 1)
        known = Signal()
        # Words beyond the need of the next request, and of the first one of its tile.
        lead = Signal(signed(COUNT_BITS), reset_less=True)
        tile_lead = Signal(signed(COUNT_BITS), reset_less=True)
        next_tile = Signal(signed(COUNT_BITS))
        free, last = self._count(m)
        m.d.comb += [
            self.go.eq(free | (known & ~lead[-1])),
            next_tile.eq(with_carry(tile_lead, Mux(self.taken & last, tile_less, 0), count[0] ^ before)),
        ]
        m.d.sync += [
            count.eq(Array(self.counts)[core]),
            before.eq(count[0]),
            starting.eq(starting << 1),
            tile_lead.eq(next_tile),
            lead.eq(with_carry(lead, Mux(self.taken, less, 0), count[0] ^ before)),
        ]
        with m.If(self.taken & last):
            m.d.sync += lead.eq(next_tile)
        with m.If(starting[-1]):
            need = count - first - 1
            m.d.sync += [known.eq(1), lead.eq(need), tile_lead.eq(need)]
        with m.If(self.start):
            given = self.follow
            m.d.sync += [
                core.eq(given.core),
                first.eq(given.first),
                less.eq(-given.step),
                tile_less.eq(-given.tile_step),
                starting.eq(1),
                known.eq(0),
            ]
        return m

    def _count(self, m: Module) -> tuple[Signal, Signal]:
        """Count the requests that wait; return whether none does, and whether the next is its tile's last."""
        given = self.follow
        per_tile = Signal(REQUEST_BITS, reset_less=True)
        left = Signal(REQUEST_BITS, reset_less=True)  # requests of the tile after the next one
        tiles_left = Signal(REQUEST_BITS, reset_less=True)  # tiles after this one
        last = Signal(reset_less=True)
        last_tile = Signal(reset_less=True)
        free = Signal(init=1)

        def begin(requests: Any) -> list[Any]:
            return [left.eq(requests - 1), last.eq(requests == 1)]

        with m.If(self.taken):
            m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
            with m.If(last):
                m.d.sync += [
                    *begin(per_tile),
                    tiles_left.eq(tiles_left - 1),
                    last_tile.eq(tiles_left == 1),
                    free.eq(free | last_tile),
                ]
        with m.If(self.start):
            m.d.sync += [
                per_tile.eq(given.per_tile),
                *begin(given.per_tile),
                tiles_left.eq(given.tiles - 1),
                last_tile.eq(given.tiles == 1),
                free.eq(given.tiles == 0),
            ]
        return free, last
