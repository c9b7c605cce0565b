# amaranth: UnusedElaboratable=no
"""Launches of the kernel's body on stalling memories, beside the golden model of programs."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.lib.place import InlinePlacer
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.driver.weights import weight_buffers
from hw.network.kernel.arguments import CAUSES, weight_ports
from hw.network.kernel.body import NetworkBody
from hw.network.program.image import encode, opening_records
from hw.network.program.program import NetworkProgram
from hw.network.program.records import RECORD_BYTES
from tests.hw.network.program import example
from tests.hw.network.program.replay import region_of, replay
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import hash_seed, simulate

#: Half of the array and of the lanes, few banks; limits that every random network of the tests keeps.
CONFIG = replace(example.CONFIG, max_steps=64, scales=64, vector_taps=128)
BASE, IMAGE, WEIGHTS = 0x1_0000_0040, 0x2_0000_0080, 0x3_0000_0000


@functools.lru_cache(maxsize=2)
def built(config: NetworkConfig) -> NetworkBody:
    """Return the body of a shape, the same one each time: its simulator is compiled once."""
    return NetworkBody(config, InlinePlacer())


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A program with its region's content."""

    program: NetworkProgram
    inputs: dict[str, NDArray[np.int8]]  #: Elements of each input.
    idle: int = 2  #: Cycles from the done before it.
    opening: int = 0  #: Records before the first command; 0: the image's own.


@dataclass
class Outcome:
    """What a launch left."""

    counters: dict[str, int]
    region: NDArray[np.uint8]  #: Bytes of the program's region.
    changed: set[int]  #: Addresses of bytes outside of the region that changed.
    ends: list[int]  #: Cycles from start to the end of each step.


def run(
    launches: list[Launch],
    *,
    config: NetworkConfig = CONFIG,
    stall: float = 0.0,
    latency: tuple[int, int] = (1, 12),
    seed: int = 0,
    limit: int = 60_000,
) -> list[Outcome]:
    """Launch programs one after the other, each on an untouched region, without a reset."""
    body = built(config)
    ports = ["gmem0", *weight_ports(config)]
    memories = [
        AxiMemory(getattr(body, name), stall=stall, latency=latency, seed=hash_seed(seed, name))
        for name in ports
    ]
    outcomes: list[Outcome] = []

    def fill(launch: Launch) -> tuple[int, int]:
        for memory in memories:
            memory.bytes.clear()
        main = memories[0].bytes
        main.update(enumerate(region_of(launch.program, launch.inputs).tolist(), BASE))
        image = encode(launch.program, config)
        main.update(enumerate(image, IMAGE))
        for memory, content in zip(memories[1:], weight_buffers(launch.program, config), strict=True):
            memory.bytes.update(enumerate(content.tolist(), WEIGHTS))
        return len(image) // RECORD_BYTES, launch.opening or opening_records(image)

    async def host(ctx: Any) -> None:
        async def tick() -> tuple[bool, int]:
            _, reset, done, steps = await ctx.tick().sample(body.done, body.counters.steps_total)
            assert not reset
            return done, steps

        for launch in launches:
            for _ in range(launch.idle - 1):
                assert not (await tick())[0]
            records, opening = fill(launch)
            ctx.set(body.args.program_records, records)
            ctx.set(body.args.opening_records, opening)
            ctx.set(body.args.program, IMAGE)
            ctx.set(body.args.memory, BASE)
            for n in range(config.weight_ports):
                ctx.set(body.args[f"weights_{n}"], WEIGHTS)
            before = dict(memories[0].bytes)
            ctx.set(body.start, 1)
            _, counted = await tick()
            ctx.set(body.start, 0)
            done, cycles, ends = False, 0, list[int]()
            while not done:
                cycles += 1
                done, steps = await tick()
                if steps == counted + 1:  # counted a cycle after its end
                    ends.append(cycles - 1)
                counted = steps
            assert not any(memory.under_way for memory in memories)
            counters = {name: body.counters[name] for name, _ in body.counters.shape()}
            await tick()
            found = {name: ctx.get(counter) for name, counter in counters.items()}
            assert found["cycles_total"] == cycles
            size = WORD_BYTES * launch.program.memory_words
            region = np.frombuffer(memories[0].content(BASE, size), np.uint8)
            outside = memories[0].bytes.items() - before.items()
            changed = {at for at, _ in outside if not BASE <= at < BASE + size}
            outcomes.append(Outcome(found, region, changed, ends))

    benches = [bench for memory in memories for bench in memory.testbenches()]
    simulate(body, host, background=benches, limit=limit)
    return outcomes


def check(launch: Launch, outcome: Outcome, config: NetworkConfig = CONFIG) -> None:
    """Compare every byte that a launch wrote, and its counters.

    Bytes behind a tensor in its last word are left out where nothing has written them: they come from the
    launch before, or from power on.
    """
    program, counters = launch.program, outcome.counters
    wanted = region_of(program, launch.inputs)
    known = replay(program, wanted, config, reads_late=False, writes_late=False)
    assert (np.flatnonzero((outcome.region != wanted) & known).size, outcome.changed) == (0, set())
    read = sum(each.moved_words for each in program.reads) * 64 + len(encode(program, config))
    assert counters["gmem0_read_bytes"] == read
    assert counters["gmem0_write_bytes"] == 64 * sum(each.words for each in program.writes)
    assert counters["steps_total"] == len(program.steps)
    parts = ["cycles_busy", *(f"cycles_stall_{cause}" for cause in CAUSES), "cycles_idle"]
    assert sum(counters[part] for part in parts) == counters["cycles_total"]
