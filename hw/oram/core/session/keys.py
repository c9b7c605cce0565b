"""All keys of the map, derived from two."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.place import Placer
from hw.oram.core.crypto.aes_lane import BLOCK_BITS, KEYS_LAYOUT
from hw.oram.core.crypto.config import PageShape, power_layout
from hw.oram.core.crypto.key_schedule import KeySchedule
from hw.oram.core.crypto.power_table import PowerTable

#: Keys derived from the seed: key n is the block n encrypted under the seed, from 1 on.
DERIVED = ("page", "permutation", "draw")


class Keys(wiring.Component):
    """Derives the keys and expands them.

    ``page``, ``record``: shapes of pages, and of the session's records.

    Behaviour
    ---------
    It takes the time of four key schedules, or of two and the page's power table if that is longer, and a few
    cycles more.
    """

    def __init__(self, *, page: PageShape, record: PageShape, placer: Placer) -> None:
        self._shapes = {"session": record, "page": page}
        self._placer = placer
        super().__init__(
            {
                "start": In(1),  #: Takes the two keys.
                #: ``session``, ``seed``: constant until ``done``.
                "session": In(BLOCK_BITS),
                "seed": In(BLOCK_BITS),
                **{f"{name}_keys": Out(KEYS_LAYOUT) for name in ("session", *DERIVED)},  #: Round keys.
                #: Powers of the hash keys, written to all hashes.
                **{f"{name}_power": Out(power_layout(shape)) for name, shape in self._shapes.items()},
                "done": Out(1),  #: Pulse: all keys and powers are valid and constant.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """One schedule derives the keys in sequence under the seed, and expands the last key."""
        m = Module()
        schedules = {}
        for name in ("session", *DERIVED):
            m.submodules[name] = schedules[name] = schedule = KeySchedule()
            m.d.comb += getattr(self, f"{name}_keys").eq(schedule.round_keys)
        session, last = schedules["session"], schedules[DERIVED[-1]]
        m.d.comb += [session.start.eq(self.start), session.key.eq(self.session)]

        number = Signal(range(len(DERIVED) + 1))
        derives = Signal()
        derived = Signal()
        again = Signal()
        m.d.sync += [derives.eq(0), again.eq(0)]
        m.d.comb += derived.eq(last.done & (number != 0))
        with m.If(self.start):
            m.d.sync += [number.eq(1), derives.eq(1)]
        with m.If(derived):
            m.d.sync += number.eq(number + 1)
            with m.If(number == len(DERIVED)):
                m.d.sync += [number.eq(0), again.eq(1)]
            with m.Else():
                m.d.sync += derives.eq(1)
        fresh = Signal(BLOCK_BITS, reset_less=True)
        with m.If(derived):
            m.d.sync += fresh.eq(last.encrypted)
        m.d.comb += [
            last.start.eq(derives | again),
            last.key.eq(self.seed),
            last.block.eq(number),
        ]
        with m.If(again):
            m.d.comb += last.key.eq(fresh)
        for n, name in enumerate(DERIVED[:-1], start=1):
            begins = Signal(name=f"{name}_begins")
            m.d.sync += begins.eq(derived & (number == n))
            m.d.comb += [schedules[name].start.eq(begins), schedules[name].key.eq(fresh)]

        # Done when the last key and both tables are.
        missing = Signal(1 + len(self._shapes))
        m.d.sync += self.done.eq(0)
        ready = Signal()
        m.d.sync += ready.eq(last.done & (number == 0))
        arrived = [ready]
        for name, shape in self._shapes.items():
            m.submodules[f"{name}_powers"] = table = PowerTable(shape, self._placer)
            m.d.comb += [
                table.start.eq(schedules[name].done),
                table.hash_key.eq(schedules[name].encrypted),
                getattr(self, f"{name}_power").eq(table.power),
            ]
            arrived.append(table.done)
        for n, one in enumerate(arrived):
            with m.If(one):
                m.d.sync += missing[n].eq(0)
        waiting = Signal()
        with m.If(waiting & ~missing.any()):
            m.d.sync += [waiting.eq(0), self.done.eq(1)]
        with m.If(self.start):
            m.d.sync += [missing.eq(-1), waiting.eq(1)]
        return m
