"""Stamps of a bucket's entries: the operation that last kept each key."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.oram.config import OramConfig
from hw.oram.core.bits import any_of

#: Highest bits of a stamp, by which its age is checked.
_PART_BITS = 3


def _parts_kept(window: int, size: int) -> int:
    """Return the most parts between an operation and one of its window."""
    return (window - 1) // size + 1


def stamp_bits(*, window: int, log: int) -> int:
    """Return the bits of an operation's number in a stamp.

    A checked stamp lies at most D parts back, so less than D + 1 parts of operations. Its bucket is loaded
    again before ``log`` further ones, or leaves the log. It may then lie all parts but one back.
    """
    bits = _PART_BITS
    while True:
        size = 1 << bits >> _PART_BITS
        if (_parts_kept(window, size) + 1) * size - 1 + log <= ((1 << _PART_BITS) - 1) * size:
            return bits
        bits += 1


def number_bits(config: OramConfig) -> int:
    """Return the bits of an operation's number in the stamps of a configuration."""
    return stamp_bits(window=config.window, log=config.position.log)


def stamps_layout(config: OramConfig) -> data.StructLayout:
    """Return the stamps of a bucket. ``known``: for each entry: it has one."""
    number = unsigned(number_bits(config))
    return data.StructLayout(
        {"known": config.bucket_entries, "numbers": data.ArrayLayout(number, config.bucket_entries)}
    )


class Stamps(wiring.Component):
    """The stamps of the bucket that a table holds.

    Behaviour
    ---------
    The cycles are those of `hw.oram.core.position.table.BucketTable`. An entry from HBM has no stamp, nor one
    that no operation of the window kept.

    Why
    ---
    The log holds the buckets of more operations than the window, so an entry from HBM is older. Other keys
    may hold a bucket in the log for ever: each operation forgets old stamps before their numbers return.
    It compares their highest bits alone, so that an entry takes two LUTs.
    """

    #: Cycles from ``load`` to the check.
    CHECK: ClassVar = 1

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        stamps, number = stamps_layout(config), number_bits(config)
        super().__init__(
            {
                #: ``load``, ``recalled``: pulse: these stamps are those of the bucket from now on.
                "load": In(1),
                "recalled": In(stamps),
                #: ``check``, ``number``: pulse, a cycle after the bucket was loaded; number of its operation.
                "check": In(1),
                "number": In(number),
                #: Entries that the operation keeps.
                "written": In(config.bucket_entries),
                "kept": Out(stamps),
                #: ``hits``: the found entry. ``known``, ``found``: a cycle later: its stamp, else zeros.
                "hits": In(config.bucket_entries),
                "known": Out(1),
                "found": Out(number),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A register for each entry, and a comparison of parts."""
        m = Module()
        config, bits = self._config, number_bits(self._config)
        count, size = config.bucket_entries, 1 << bits >> _PART_BITS
        known = Signal(count, name="known_now", reset_less=True)
        numbers = [Signal(bits, name=f"number_{n}", reset_less=True) for n in range(count)]

        def back(number: Value) -> Value:
            return (self.number[-_PART_BITS:] - number[-_PART_BITS:])[:_PART_BITS]

        most = _parts_kept(config.window, size)
        with m.If(self.check):
            m.d.sync += known.eq(known & Cat(back(number) <= most for number in numbers))
        for n in range(count):
            with m.If(self.written[n]):
                m.d.sync += [known[n].eq(1), numbers[n].eq(self.number)]
        with m.If(self.load):
            m.d.sync += known.eq(self.recalled.known)
            m.d.sync += [number.eq(self.recalled.numbers[n]) for n, number in enumerate(numbers)]
        hits = self.hits & known
        m.d.sync += [
            self.known.eq(hits.any()),
            self.found.eq(any_of([number & hits[n].replicate(bits) for n, number in enumerate(numbers)])),
        ]
        m.d.comb += self.kept.known.eq(known)
        m.d.comb += [self.kept.numbers[n].eq(number) for n, number in enumerate(numbers)]
        return m
