"""Launches of the oblivious map without reset between them: results, state and bus equal those of one
launch.
"""

from dataclasses import replace
from itertools import chain, repeat

import numpy as np

from hw.oram.core.layouts import Code
from hw.oram.driver.buffers import COMMANDS, RESPONSES, launch_buffers
from hw.oram.driver.sealing import stop_record
from hw.oram.kernel.arguments import LOCK, Fault
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL
from sim.memory.trace import Channel
from sim.run.adapter import Tamper
from sim.run.layout import register_writes
from sim.run.run import compare
from tests.support.oram.bus import BOARD, Bus, simulated

#: Operations until the end of the first, second and third launch; an operation whose command is late.
ENDS, LATE = (70, 110, 150), 96
SLOTS, SIZE = 256, SMALL.command_bytes
RING = SLOTS * SIZE


def job():
    """Operations on few keys, so that later launches find keys of earlier ones."""
    rng, count = np.random.default_rng(11), ENDS[-1]
    return ADAPTER.job(
        {
            "codes": rng.choice([*Code, 9], count, p=[0.05, 0.3, 0.4, 0.15, 0.05, 0.05]).astype(np.uint8),
            "keys": rng.integers(24, size=count),
            "values": rng.integers(256, size=(count, SMALL.value_bytes), dtype=np.uint8),
            "rejected": rng.random(count) < 0.05,
            "state": np.array(True),
            "seed": np.array(9),  # an epoch with bits in both words
        },
        SMALL,
    )


#: Not written before the first call.
WITHHELD = ("seed1", LOCK)


def withheld(launch, table, buffers):
    """Write the registers of each call, but for `WITHHELD` of the first."""
    first, *further = register_writes(launch, table, buffers)
    offsets = {table.offset(name) for name in WITHHELD}
    return tuple(write for write in first if write[0] not in offsets), *further


def several(job):
    """Return the launch: two rings of commands, the first with a stop record in front of further ones.

    It includes a call before all keys are written, one before the map exists, and one that initializes again
    with other keys and pages. One of the later calls has these, too. All calls but the first write other keys
    and another epoch; only their word that was withheld is right.
    """
    rings = np.zeros((2, SLOTS, SIZE), np.uint8)
    rings[:, : ENDS[2]] = job.commands
    rings[0, ENDS[0]], rings[1, ENDS[2]] = (stop_record(SMALL, ENDS[launch]) for launch in (0, 2))
    rings[1, LATE, 0] ^= 1
    late = RING + LATE * SIZE
    commands, *others = launch_buffers(SMALL, rings.reshape(-1, SIZE), state=True)
    keys = {name: word ^ 5 for name, word in job.secrets.scalars.items()}
    foreign = keys | {"pages": 64}
    one = ADAPTER.launch(job, SMALL, BOARD)
    return replace(
        one,
        scalars=one.scalars | {"initialize": 1, "operation_count": 0, "ring_slots": SLOTS},
        buffers=(replace(commands, output=True), *others),
        tampers=(Tamper(COMMANDS, late, 1, late, late, 1, 1),),
        then=(
            keys | {name: one.scalars[name] for name in WITHHELD} | {"initialize": 0},
            keys | {"initialize": 1},
            foreign | {"operation_count": 7},
            {"initialize": 0, "operation_count": ENDS[1] - ENDS[0], COMMANDS: RING, RESPONSES: RING},
            {"operation_count": 0},
        ),
    )


def test_several_launches_are_as_one(tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of `test_engines`, too
    monkeypatch.setattr("sim.run.launch.register_writes", withheld)
    given = job()
    launch = several(given)
    done, trace = simulated(SMALL, launch, tmp_path)
    counters = [call.counters for call in done.answer.calls]
    assert [counted["status"] for counted in counters] == [
        Fault.UNKEYED,
        Fault.EMPTY,
        0,
        Fault.AGAIN,
        0,
        0,
    ]
    assert [counted["answered_count"] for counted in counters] == [0, 0, ENDS[0], *ENDS]
    initialized = [counted["initialization_cycles"] > 0 for counted in counters]
    assert initialized == [False, False, True, *[False] * 3]
    refused = [counters[call] for call in (0, 1, 3)]
    assert not any(counted[name] for counted in refused for name in counted if name.endswith("_bytes"))

    # The answers: not a byte of other responses.
    rings = done.buffers[RESPONSES].reshape(2, SLOTS, SIZE)
    answers = np.concatenate([rings[0, : ENDS[0]], rings[1, ENDS[0] : ENDS[2]]])
    found = ADAPTER.outputs(given, SMALL, {**done.buffers, RESPONSES: answers})
    assert compare(found, ADAPTER.golden(given, SMALL)) == ()
    others = np.concatenate([rings[0, ENDS[0] :], rings[1, : ENDS[0]], rings[1, ENDS[2] :]])
    assert (others == others[0, 0]).all()

    # The bus of each launch from its first read of a command on.
    bus = Bus(SMALL, launch, trace)
    reads = bus.trace[bus.trace["channel"] == Channel.AR]
    begun = [
        int(first["cycle"] - first["waited"])
        for slot in (SLOTS + ENDS[0], SLOTS + ENDS[1])
        for first in reads[reads["address"] == bus.addresses[COMMANDS] + slot * SIZE][:1]
    ]
    before, second, third = np.split(bus.trace, np.searchsorted(bus.trace["cycle"], begun))
    looks = chain([True] * (LATE - ENDS[0]), [False], repeat(True))
    replace(bus, trace=before).follows(given, until=ENDS[0], endless=True, empty_pages=SMALL.host_pages)
    replace(bus, trace=second).follows(given, first=ENDS[0], until=ENDS[1], ring=RING, found=looks)
    replace(bus, trace=third).follows(given, first=ENDS[1], ring=RING, endless=True)
