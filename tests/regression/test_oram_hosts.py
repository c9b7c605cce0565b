"""All that a host sees of a launch follows from labels and its own pace: bus, registers, and the end.

Launches of one kind of operation equal, bit for bit, launches of hits on other keys with the same labels.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from hw.oram.driver.buffers import COMMANDS
from hw.oram.kernel.arguments import PAGE_PORT, RING_PORT
from hw.registry import find_engine
from sim.bench.plan import BenchPlan
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL
from sim.memory.trace import Channel
from sim.run.run import compare
from tests.support.oram.alike import Alike
from tests.support.oram.bus import BOARD, Bus, simulated
from tests.support.oram.links import with_hbm, with_link
from tests.support.oram.workloads import tensors_of

#: Operations of a launch, whole groups of commands; keys of the map; the session's seed.
EACH, LOADED, SEED = 16, 112, 10
#: Nanoseconds from the last data of a write to the host's answer; in `make test` the least and the most.
ANSWERS = (20, 100, 400, 1000)
#: Cycles of HBM's answer to a write, which comes long after the host's, and before the deadline.
LATE_CYCLES = 300
CASES = [
    pytest.param(config, answer_ns, id=f"{name}-{answer_ns}", marks=[pytest.mark.soak] if soak else [])
    for name, config in (("small", SMALL), ("default", OramConfig()))
    for answer_ns in ANSWERS
    for soak in [config is not SMALL or answer_ns not in (ANSWERS[0], ANSWERS[-1])]
]
#: Of launches that are no hits.
STATUSES = {
    "loaded": {Status.INSERTED},
    "inserted": {Status.INSERTED},
    "absent": {Status.MISS},
    "mixed": {Status.MISS, Status.MALFORMED},
}


@functools.cache
def launches(config: OramConfig) -> Alike:
    """Return launches of every kind, each beside one of hits with its labels."""
    rng = np.random.default_rng(1)
    made = Alike(config, SEED, loaded=LOADED, exact=config is SMALL)
    made.begin("inserted", [Code.PUT] * EACH)
    made.follow("written", [Code.PUT] * EACH)
    made.begin("mixed", rng.choice([Code.NOP, Code.DELETE, 200], EACH))
    made.follow("deleted", [Code.DELETE] * EACH)
    made.begin("one key", rng.choice([Code.GET, Code.PUT], EACH), hot=True)
    made.follow("read", [Code.GET] * EACH)
    made.begin("absent", [Code.GET])
    made.follow("read", [Code.GET])
    return made


def registers_of(config):
    """Return the offset of each register of an argument, by the argument."""
    table = find_engine("oram").arguments(config, BOARD)
    return {register.argument: register.offset for register in table.registers}


def reading_all(config):
    """Return a plan that reads the registers of arguments and interrupts, too, in pairs of words."""
    pairs = {hex(offset): offset for offset in range(0x08, max(registers_of(config).values()) + 8, 8)}
    return lambda **fields: BenchPlan(**fields | {"counters": fields["counters"] | pairs})


def word(read, offset):
    """Return the word at an offset."""
    return read[hex(offset & ~7)] >> 8 * (offset & 4) & 0xFFFFFFFF


def buses(bus, parts):
    """Return the transfers of each launch: cycles from its first, addresses of rings from its own slots."""
    trace, ring = bus.trace.copy(), bus.ports.index(RING_PORT)
    size, slots = bus.config.command_bytes, np.cumsum([0, *(part.operations for part in parts)])
    looks = trace[(trace["port"] == ring) & (trace["channel"] == Channel.AR)]
    firsts = [looks[looks["address"] == bus.addresses[COMMANDS] + slot * size][0] for slot in slots[:-1]]
    begins = [int(np.searchsorted(trace["cycle"], first["cycle"])) for first in firsts]
    for first, slot, own in zip(firsts, slots, np.split(trace, begins)[1:], strict=False):
        own["cycle"] -= first["cycle"]
        own["address"][own["port"] == ring] -= np.uint64(slot * size)
        yield own


@pytest.mark.sample(1)
@pytest.mark.parametrize(("config", "answer_ns"), CASES)
def test_all_follows_from_labels_and_host(config, answer_ns, tmp_path, monkeypatch):
    """New keys, keys that are absent, one key, and keys that are deleted."""
    monkeypatch.setattr("sim.run.launch.BenchPlan", reading_all(config))
    if config is SMALL:
        monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # launches are short, in the soak too
    made = launches(config)
    job = ADAPTER.job(tensors_of(made.commands) | {"seed": np.array(SEED)}, config)
    one = ADAPTER.launch(job, config, BOARD)
    first, *others = ({"initialize": 0, "operation_count": part.operations} for part in made.parts)
    launch = replace(one, scalars=one.scalars | first | {"initialize": 1}, then=tuple(others))
    host = with_link(BOARD, write_response_ns=float(answer_ns))
    if config is SMALL:
        host = with_hbm(host, write_response_axi_cycles=LATE_CYCLES)
    done, trace = simulated(config, launch, tmp_path, memory_board=host)
    assert compare(ADAPTER.outputs(job, config, done.buffers), ADAPTER.golden(job, config)) == ()

    offsets = {argument.name: offset for argument, offset in registers_of(config).items()}
    secrets = [argument.name for argument in registers_of(config) if argument.secret]
    assert len(secrets) == 10
    bus = Bus(config, launch, trace)
    pages = bus.ports.index(PAGE_PORT)
    answered, seen = 0, defaultdict(list)
    for part, call, own in zip(made.parts, done.answer.calls, buses(bus, made.parts), strict=True):
        outcomes = job.played.outcomes[answered : answered + part.operations]
        assert {outcome.status for outcome in outcomes} == STATUSES.get(part.name, {Status.HIT})
        answered += part.operations
        read = dict(call.counters) | {"done": call.cycles_start_to_done}
        assert read.pop("answered_count") == answered
        assert read["status"] == 0
        assert not any(word(read, offsets[name]) for name in secrets)
        assert word(read, offsets["operation_count"]) == part.operations
        if config is not SMALL:  # pages differ
            own["address"][own["port"] == pages] = 0
        seen[part.group].append((read, own))
    assert [len(group) for group in seen.values()] == [1, 2, 2, 2, 2]
    for (read, own), *others in seen.values():
        for other_read, other in others:
            assert other_read == read
            np.testing.assert_array_equal(other, own)
