"""All keys of the map, derived from two keys and an epoch."""

from typing import Any, NamedTuple

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.place import Placer
from hw.oram.core.crypto.aes_lane import BLOCK_BITS, KEYS_LAYOUT
from hw.oram.core.crypto.config import PageShape, power_layout
from hw.oram.core.crypto.key_schedule import KeySchedule
from hw.oram.core.crypto.power_table import PowerTable
from hw.oram.core.session.record import CONFIRM_BITS

#: Bits of an epoch, and of the label in front of it.
EPOCH_BITS = LABEL_BITS = 64


class Derivation(NamedTuple):
    """A block encrypted under ``session`` or ``seed``: ``label``, then the epoch."""

    name: str
    source: str
    label: int


CONFIRM = "confirm"
#: In order: the page's key first, since its powers take longest. The last schedule derives all of them.
DERIVATIONS = (
    Derivation("page", "seed", 1),
    Derivation("session", "session", 4),
    Derivation("permutation", "seed", 2),
    Derivation(CONFIRM, "seed", 5),
    Derivation("draw", "seed", 3),
)
#: Keys that are expanded.
EXPANDED = tuple(derivation.name for derivation in DERIVATIONS if derivation.name != CONFIRM)


class Keys(wiring.Component):
    """Derives the keys and expands them.

    ``page``, ``record``: shapes of pages, and of the session's records.

    Behaviour
    ---------
    It takes the time of six key schedules, or of two and the page's power table if that is longer, and a few
    cycles more.
    """

    def __init__(self, *, page: PageShape, record: PageShape, placer: Placer) -> None:
        self._shapes = {"session": record, "page": page}
        self._placer = placer
        super().__init__(
            {
                "start": In(1),  #: Takes keys and epoch.
                #: ``session``, ``seed``, ``epoch``: constant until ``done``.
                "session": In(BLOCK_BITS),
                "seed": In(BLOCK_BITS),
                "epoch": In(EPOCH_BITS),
                **{f"{name}_keys": Out(KEYS_LAYOUT) for name in EXPANDED},  #: Round keys.
                "confirm": Out(CONFIRM_BITS),  #: The lowest bits of the block that confirms keys and epoch.
                #: Powers of the hash keys, written to all hashes.
                **{f"{name}_power": Out(power_layout(shape)) for name, shape in self._shapes.items()},
                "done": Out(1),  #: Pulse: all keys, powers and the confirmation are valid and constant.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """One schedule derives the keys in sequence, and expands the last key."""
        m = Module()
        schedules = {}
        for name in EXPANDED:
            m.submodules[name] = schedules[name] = schedule = KeySchedule()
            m.d.comb += getattr(self, f"{name}_keys").eq(schedule.round_keys)
        last = schedules[EXPANDED[-1]]
        ready = self._derive(m, schedules, last)

        # Done when the last key and both tables are.
        missing = Signal(1 + len(self._shapes))
        m.d.sync += self.done.eq(0)
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

    def _derive(self, m: Module, schedules: dict[str, KeySchedule], last: KeySchedule) -> Signal:
        """Start ``last`` once for each derivation, and once more with its own key; return the end's pulse."""
        steps = len(DERIVATIONS)
        step = Signal(range(steps + 1))  # number of the derivation under way
        begins = Signal()
        derived = Signal()
        ready = Signal()
        m.d.comb += derived.eq(last.done & (step != 0))
        m.d.sync += [begins.eq(self.start | derived), ready.eq(last.done & (step == 0))]
        with m.If(derived):
            m.d.sync += step.eq(Mux(step == steps, 0, step + 1))
        with m.If(self.start):
            m.d.sync += step.eq(1)
        fresh = Signal(BLOCK_BITS, reset_less=True)
        with m.If(derived):
            m.d.sync += fresh.eq(last.encrypted)

        # In the cycle of ``begins``, ``step`` is the number of the derivation, from 1 on; 0 expands, and its
        # encrypted block is unused.
        labels = [0, *(derivation.label for derivation in DERIVATIONS)]
        of_session = [0, *(derivation.source == "session" for derivation in DERIVATIONS)]
        source = Mux(Array(Const(one, 1) for one in of_session)[step], self.session, self.seed)
        label = Array(Const(one, LABEL_BITS) for one in labels)[step]
        m.d.comb += [
            last.start.eq(begins),
            last.key.eq(Mux(step == 0, fresh, source)),
            last.block.eq(Cat(label, self.epoch)),
        ]
        for number, derivation in enumerate(DERIVATIONS[:-1], start=1):
            arrives = Signal(name=f"{derivation.name}_arrives")
            m.d.sync += arrives.eq(derived & (step == number))
            if derivation.name == CONFIRM:
                with m.If(arrives):
                    m.d.sync += self.confirm.eq(fresh[:CONFIRM_BITS])
            else:
                schedule = schedules[derivation.name]
                m.d.comb += [schedule.start.eq(arrives), schedule.key.eq(fresh)]
        return ready
