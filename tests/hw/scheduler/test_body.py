"""The whole scheduler behind its AXI port: random programs compute what they say, however memory stalls."""

import random

import pytest

from hw.lib.place import InlinePlacer
from hw.scheduler.arguments import CAUSES
from hw.scheduler.body import SchedulerBody
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.example import example_program
from tests.support.axi_memory import AxiMemory
from tests.support.scheduler import RandomProgram, interpret
from tests.support.streams import seeds, simulate

BASE = 0x1_0000_1000


def run(config, content, *, launches=1, stall=0.0, latency=(1, 12), seed=0, limit=60_000):
    """Run a program with ``content`` in memory; gives the bytes written and the counters of each launch."""
    body = SchedulerBody(config, InlinePlacer())
    memory = AxiMemory(body.gmem0, stall=stall, latency=latency, seed=seed)
    size = config.word_bytes
    for address, word in content.items():
        memory.bytes.update(enumerate(word.to_bytes(size, "little"), BASE + address * size))
    outcomes = []

    async def host(ctx):
        ctx.set(body.args.memory, BASE)
        for _ in range(launches):
            ctx.set(body.start, 1)
            await ctx.tick()
            ctx.set(body.start, 0)
            cycles, done = 1, False
            while not done:
                _, _, done = await ctx.tick().sample(body.done)
                cycles += 1
            await ctx.tick()
            await ctx.tick()
            counters = {name: ctx.get(body.counters[name]) for name, _ in body.counters.shape()}
            assert counters["cycles_total"] == cycles - 1
            outcomes.append(counters)

    simulate(body, host, background=memory.testbenches(), limit=limit)
    return memory, outcomes


def check(program, sources, *, config=None, **options):
    """Run ``program`` on random sources and compare everything it writes, and its counters."""
    rng = random.Random(options.get("seed", 0))
    content = {
        address: rng.getrandbits(8 * program.word_bytes)
        for home, words in sources
        for address in range(home, home + words)
    }
    config = config or SchedulerConfig(
        program=program, scratchpad_bytes=128 * program.word_bytes, word_bytes=program.word_bytes, banks=4
    )
    memory, outcomes = run(config, content, **options)
    for address, word in interpret(program, content).items():
        at = BASE + address * program.word_bytes
        assert memory.content(at, program.word_bytes) == word.to_bytes(program.word_bytes, "little"), address
    for counters in outcomes:
        assert counters["gmem0_read_bytes"] == program.read_bytes
        assert counters["gmem0_write_bytes"] == program.write_bytes
        assert counters["steps_total"] == len(program.steps)
        parts = ["cycles_busy", *(f"cycles_stall_{cause}" for cause in CAUSES), "cycles_idle"]
        assert sum(counters[part] for part in parts) == counters["cycles_total"]
    return outcomes


@pytest.mark.parametrize("stall", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("seed", seeds(4, 60))
def test_random_programs(seed, stall):
    maker = RandomProgram(seed)
    check(maker.make(), maker.sources, stall=stall, seed=seed)


@pytest.mark.parametrize("word_bytes", [4, 16, 32])
def test_example(word_bytes):
    program = example_program(word_bytes)
    config = SchedulerConfig(program=program, scratchpad_bytes=512 * word_bytes, word_bytes=word_bytes)
    sources = [(read.dram_address, read.words) for read in program.reads if read.start_step != 3]
    check(program, sources, config=config)
