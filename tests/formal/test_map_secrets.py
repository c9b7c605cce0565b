"""The oblivious map at its host's side, for all time: no time and no address follows from a secret.

Two copies of each part have the same public inputs, and secrets of their own. What one part shows, the next
one takes as public: rings, acceptance, opening of commands, sealing of responses, launches. Issue and
admission are in `tests.formal.test_touch_properties`.

Copies begin in one state, with memories of zeros. Faults are public, also those of HBM: a late answer stops
the map, and that shows.
"""

from __future__ import annotations

import pytest
from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.oram.config import OramConfig
from hw.oram.core.layouts import BEAT_BITS
from hw.oram.core.session.command_opener import CommandOpener
from hw.oram.core.session.queries import Queries
from hw.oram.core.session.response_sealer import ResponseSealer
from hw.oram.core.touch.accept import Accept
from hw.oram.core.touch.alone import Alone
from hw.oram.kernel.sequencer import Sequencer
from hw.oram.movers.erase import Erase
from hw.oram.movers.ring.command_reader import STOP_BIT, CommandReader
from hw.oram.movers.ring.response_writer import ResponseWriter
from tests.support.proofs.formal import PropertyFailure, alike
from tests.support.proofs.mutants import mutant
from tests.support.proofs.twins import SecretPlacer, Twins


class Small(OramConfig):
    """A map too small for any engine; its records have two beats."""

    accepted = 2
    command_records = 4
    response_records = 2
    ring_group = 2
    interval = 8
    operation_bits = 2

    def __post_init__(self):
        pass


CONFIG = Small(log_n=8, key_bits=32, value_bytes=64, inflight=2)
#: Cycles without a burst that end a launch, those of its end, and those of an erasure.
QUIET, END, ERASURE = 3, 8, 6
#: Cells that only compute.
PLACER = SecretPlacer(("aes_lane", "gf_products"))


class Acceptance(wiring.Component):
    """Acceptance of operations, and whether they are alone, connected as in the map."""

    def __init__(self, accept=Accept, alone=Alone):
        self.accept, self.lone = accept(CONFIG), alone(CONFIG, rest=6)
        inputs = dict.fromkeys(("arrived", "issued", "turned", "halt"), In(1))
        beats = stream.Signature(BEAT_BITS)
        super().__init__({**inputs, "i": In(beats), "o": Out(beats), "accepted": Out(1), "alone": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.accept, m.submodules.lone = accept, lone = self.accept, self.lone
        connect(m, flipped(self.i), accept.i)
        connect(m, accept.o, flipped(self.o))
        m.d.comb += [getattr(accept, name).eq(getattr(self, name)) for name in ("arrived", "issued", "halt")]
        m.d.comb += [
            lone.accepted.eq(accept.accepted),
            lone.turned.eq(self.turned),
            self.accepted.eq(accept.accepted),
            self.alone.eq(lone.alone),
        ]
        return m


def head(m, reader):
    """The host knows a record's sequence number and stop bit; all else is sealed."""
    beats = CONFIG.command_bytes // 64
    place = Signal(range(beats), name="place")
    with m.If(reader.axi.rvalid):
        m.d.sync += place.eq(Mux(place == beats - 1, 0, place + 1))
    return Mux(place == 0, Const((2 << STOP_BIT) - 1, BEAT_BITS), 0)


def at_end(m, sequencer):
    """In one cycle a change that is left for HBM is a fault, which shows; in all others it is secret."""
    return delay(m, "due", sequencer.flush, END - 2)


def in_time(m, erase):
    """HBM ends its erasure at any time that is not late."""
    left = Signal(range(ERASURE), name="left")
    m.d.sync += left.eq(Mux(erase.start, ERASURE - 1, left - (left != 0)))
    return left == 0


def short(erase):
    """Make an erasure of few cycles."""
    made = erase(CONFIG)
    made._cycles = ERASURE
    return made


def twins(part, leaky=None):
    """Return two copies of a part; ``leaky`` replaces the class that it is a mutant of."""

    def kind(cls):
        return leaky if leaky is not None and leaky.__name__ == cls.__name__ else cls

    match part:
        case "reader":
            reader = kind(CommandReader)
            return Twins(lambda: reader(CONFIG), secret={"axi.rdata": head}, hidden={"o.payload"})
        case "acceptance":
            accept = kind(Accept)
            return Twins(lambda: Acceptance(accept), secret={"i.payload": None}, hidden={"o.payload"})
        case "queries":
            keys = ("session_keys", "session_power", "permutation_keys", "draw_keys")
            return Twins(
                lambda: Queries(CONFIG, PLACER),
                secret=dict.fromkeys(("i.payload", *keys)),
                hidden={"value.payload", "query.payload", "rejected"},
            )
        case "sealer":
            sealer = kind(ResponseSealer)
            secret = dict.fromkeys(("i.payload", "round_keys", "power", "confirm"))
            return Twins(lambda: sealer(CONFIG, PLACER), secret=secret, hidden={"o.payload"})
        case "writer":
            writer = kind(ResponseWriter)
            return Twins(lambda: writer(CONFIG), secret={"beat.payload": None}, hidden={"axi.wdata"})
        case "erase":
            erase = kind(Erase)
            return Twins(lambda: short(erase), secret={"erased": in_time})
        case "sequencer":
            sequencer = kind(Sequencer)
            return Twins(
                lambda: sequencer(quiet_cycles=QUIET, end_cycles=END),
                secret={"bus_busy": lambda m, one: one.initializing, "flushing": at_end},
            )
    raise ValueError(part)


PARTS = ("reader", "acceptance", "queries", "sealer", "writer", "erase", "sequencer")


@pytest.mark.parametrize("part", PARTS)
def test_no_secret_shows(part):
    assert alike(twins(part)).method == "correspondence"


LEAKS = {
    "text behind the first beat ends a launch": (
        "reader",
        CommandReader,
        "valid & beats.first & ~dropping",
        "valid & ~dropping",
    ),
    "a command's text delays it": (
        "acceptance",
        Accept,
        "& ~self.halt)",
        "& ~self.halt & ~self.i.payload[-1])",
    ),
    "a beat of zeros is skipped": (
        "queries",
        CommandOpener,
        "moves & (lane == BEAT_BLOCKS - 1)",
        "moves & ((lane == BEAT_BLOCKS - 1) | ~beats.o.payload.any())",
    ),
    "a miss has no value": (
        "sealer",
        ResponseSealer,
        "sealer.i.valid.eq(rows.o.valid)",
        "sealer.i.valid.eq(rows.o.valid & ~((slot == final) & row.status[0]))",
    ),
    "a response is sent by its text": (
        "writer",
        ResponseWriter,
        "self.beat.valid & (place == final)",
        "self.beat.valid & (place == final) & ~self.beat.payload[-1]",
    ),
    "the erasure ends with HBM's": ("erase", Erase, "m.If(running & over)", "m.If(running & self.erased)"),
    "the end waits for HBM's ports": (
        "sequencer",
        Sequencer,
        "Mux(self.initializing, self.bus_busy, self.host_busy)",
        "self.bus_busy",
    ),
    "the end waits for the last change": (
        "sequencer",
        Sequencer,
        "ending.eq(ending + 1)",
        "ending.eq(ending + ~self.flushing)",
    ),
}


#: Cycles in which a leak shows, if not 12.
DEPTHS = {"reader": 6, "queries": 8, "sealer": 45, "sequencer": 30}


#: Parts whose gates are many.
LONG = {"reader", "queries", "sealer", "writer"}


@pytest.mark.parametrize(
    "leak",
    [pytest.param(leak, marks=[pytest.mark.soak] if LEAKS[leak][0] in LONG else []) for leak in LEAKS],
)
def test_a_leak_breaks_the_proof(leak, monkeypatch):
    part, cls, old, new = LEAKS[leak]
    leaky = mutant(cls, old, new)
    if cls is CommandOpener:
        monkeypatch.setattr("hw.oram.core.session.queries.CommandOpener", leaky)
    with pytest.raises(PropertyFailure, match="shows the same"):
        alike(twins(part, leaky), depth=DEPTHS.get(part, 12))
