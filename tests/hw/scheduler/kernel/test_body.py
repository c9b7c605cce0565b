"""The whole scheduler behind its AXI port: random programs compute what they say, however memory stalls."""

import functools
import random

import pytest

from hw.lib.place import InlinePlacer
from hw.scheduler.config import SchedulerConfig, frozen
from hw.scheduler.core import transfer_engine
from hw.scheduler.core.transfer_engine import Issue, ReadEngine
from hw.scheduler.kernel import body as body_module
from hw.scheduler.kernel.arguments import CAUSES
from hw.scheduler.kernel.body import SchedulerBody
from hw.scheduler.program.image import encode, record_bytes
from hw.scheduler.program.program import CoreWord, OperandWord, Program, StepWord, TransferWord, Via
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.timeline import predict
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import seeds, simulate
from tests.support.program.example import example_program
from tests.support.program.random_programs import RandomProgram, interpret
from tests.support.proofs.mutants import mutant

BASE, IMAGE = 0x1_0000_1000, 0x2_0000_0000
SOAK = pytest.mark.soak


@functools.lru_cache(maxsize=4)
def built(config, *_):
    """Give the body of a shape, the same one each time: its simulator is compiled once.

    The parts that a seeded bug is in are given too, so that a body with a bug is another one.
    """
    return SchedulerBody(config, InlinePlacer())


def run(config, content, *programs, stall=0.0, latency=(1, 12), seed=0, limit=60_000):
    """Launch programs, frozen ones where the shape has one, with ``content`` in memory.

    Gives the memory, and the counters of each launch.
    """
    parts = (transfer_engine.Issue, body_module.ReadEngine)
    # A frozen program cannot be a key of the cache.
    body = built(config, *parts) if config.program is None else built.__wrapped__(config)
    memory = AxiMemory(body.gmem0, stall=stall, latency=latency, seed=seed)
    size = config.word_bytes
    for address, word in content.items():
        memory.bytes.update(enumerate(word.to_bytes(size, "little"), BASE + address * size))
    images = [encode(program) for program in programs]
    outcomes = []

    async def host(ctx):
        ctx.set(body.args.memory, BASE)
        for image in images:
            if config.program is None:
                memory.bytes.update(enumerate(image, IMAGE))
                ctx.set(body.args.program, IMAGE)
                ctx.set(body.args.program_records, len(image) // record_bytes(size))
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


def check(program, sources, *, config=None, launches=1, **options):
    """Run ``program`` on random sources and compare everything it writes, and its counters."""
    rng = random.Random(options.get("seed", 0))
    content = {
        address: rng.getrandbits(8 * program.word_bytes)
        for home, words in sources
        for address in range(home, home + words)
    }
    config = config or shape(program)
    loaded = 0 if config.program else len(encode(program))
    memory, outcomes = run(config, content, *[program] * launches, **options)
    for address, word in interpret(program, content).items():
        at = BASE + address * program.word_bytes
        assert memory.content(at, program.word_bytes) == word.to_bytes(program.word_bytes, "little"), address
    for counters in outcomes:
        assert counters["gmem0_read_bytes"] == loaded + program.read_bytes
        assert (counters["cycles_stall_load"] > 0) == (loaded > 0)
        assert counters["gmem0_write_bytes"] == program.write_bytes
        assert counters["steps_total"] == len(program.steps)
        parts = ["cycles_busy", *(f"cycles_stall_{cause}" for cause in CAUSES), "cycles_idle"]
        assert sum(counters[part] for part in parts) == counters["cycles_total"]
    return outcomes


def shape(program, **fields):
    """Give a shape of a few words and rows that loads ``program``."""
    small = {"max_steps": 15, "max_operands": 63, "max_transfers": 63, "banks": 4}
    size = program.word_bytes
    sizes = {"scratchpad_bytes": 128 * size, "max_operator_bytes": 255 * size, "max_region_bytes": 1 << 16}
    return SchedulerConfig(word_bytes=size, **{**small, **sizes, **fields})


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_random_programs(seed):
    stall = (0.0, 0.3, 0.7)[seed % 3]
    maker = RandomProgram(seed)
    check(maker.make(), maker.sources, stall=stall, seed=seed)


@pytest.mark.parametrize("word_bytes", [pytest.param(4, marks=SOAK), 32])
def test_example(word_bytes):
    program = example_program(word_bytes)
    sources = [(read.dram_address, read.words) for read in program.reads if read.start_step != 3]
    check(program, sources, config=shape(program, scratchpad_bytes=512 * word_bytes))
    check(program, sources, config=frozen(program))


def test_programs_one_after_another():
    """A kernel keeps nothing of the program before: a longer one, a shorter one, the first again."""
    makers = [RandomProgram(seed, steps=steps) for seed, steps in ((3, 8), (4, 2), (3, 8))]
    programs = [maker.make() for maker in makers]
    rng = random.Random(7)
    words = 1 + max(program.memory_words for program in programs)
    content = {address: rng.getrandbits(64) for address in range(words)}
    memory, outcomes = run(shape(programs[0]), content, *programs)
    for program in programs:
        content |= interpret(program, content)
    for address, word in content.items():
        assert memory.content(BASE + address * 8, 8) == word.to_bytes(8, "little"), address
    assert [counters["steps_total"] for counters in outcomes] == [8, 2, 8]


def test_launches_one_after_another():
    maker = RandomProgram(5, steps=4)
    first, second = check(maker.make(), maker.sources, launches=2)
    assert {name: first[name] for name in ("gmem0_read_bytes", "steps_total")} == {
        name: second[name] for name in ("gmem0_read_bytes", "steps_total")
    }


# Where the time goes.  The memory answers after a fixed time, and a program does one thing.

LATENCY = 20
#: The same memory for the timing model: a word a cycle, no refresh.
SIMPLE = TimingModel(
    read_request_cycles=LATENCY,
    read_response_cycles=0,
    write_request_cycles=0,
    write_response_cycles=LATENCY,
    word_cycles=1,
    turnaround_cycles=0,
    refresh_interval_cycles=1e9,
    refresh_cycles=0,
)


def timed(steps, reads=(), writes=(), cores=1, off=1):
    program = Program(word_bytes=32, steps=tuple(steps), reads=tuple(reads), writes=tuple(writes))
    loading = shape(program, scratchpad_bytes=1 << 14, banks=8, cores=cores)
    _, (counters,) = run(loading, dict.fromkeys(range(256), 0), program, latency=(LATENCY, LATENCY))
    predicted = predict(program, SIMPLE, image_words=len(encode(program)) // 32)
    assert predicted.load_cycles == counters["cycles_stall_load"]
    assert abs(predicted.cycles_total - counters["cycles_total"]) <= off  # a burst may wait a cycle less
    return counters


def step(*operands, compute_cycles=0, **waits):
    *inputs, result = operands
    core = CoreWord(operator=1, inputs=tuple(inputs), outputs=(result,), compute_cycles=compute_cycles)
    return StepWord(cores=(core,), **waits)


@pytest.mark.parametrize(("words_in", "words_out", "compute"), [(40, 10, 0), (9, 33, 70), (9, 33, 44)])
def test_cycles_of_steps(words_in, words_out, compute):
    operands = [OperandWord(address=0, words=words_in), OperandWord(address=200, words=words_out)]
    counters = timed([step(*operands, compute_cycles=compute)] * 3)
    steps = 3 * (3 + max(compute, max(words_in, words_out) + 12))
    assert counters["cycles_total"] - counters["cycles_stall_load"] == steps + 4
    assert counters["cycles_busy"] >= 3 * max(words_in, words_out, compute - 1)


@pytest.mark.parametrize(
    ("words", "parts"),
    [(1, 1), (37, 1), (5, 3), *(pytest.param(*more, marks=SOAK) for more in ((2, 1), (16, 3)))],
)
def test_cycles_of_transfers(words, parts):
    result = OperandWord(address=250, words=1)
    moves = [
        TransferWord(dram_address=words * part, address=words * part, words=words, start_step=0)
        for part in range(parts)
    ]
    counters = timed([step(result, wait_reads=parts)], reads=moves)
    assert counters["cycles_stall_read"] >= parts * words + LATENCY
    counters = timed([step(result)], writes=moves)
    assert counters["cycles_stall_drain"] >= parts * words + LATENCY


@pytest.mark.parametrize("ring", [4, pytest.param(16, marks=SOAK)])
def test_rings_pass_a_word_a_cycle(ring):
    words = 70
    source, target = OperandWord(address=0, words=words), OperandWord(address=152, words=words)
    one = words + 3 + 12 + 4

    fifo = OperandWord(address=400, words=words, via=Via.FIFO, ring=ring)
    front, back = step(source, fifo), step(fifo, target)
    pipelined = StepWord(cores=(*front.cores, *back.cores))
    # Two reads of one bank meet, which the model leaves out.
    counters = timed([pipelined], cores=2, off=2)
    assert counters["cycles_total"] - counters["cycles_stall_load"] <= one + 12

    through = OperandWord(address=400, words=words, via=Via.MEMORY, ring=ring)
    transfer = TransferWord(dram_address=0, address=400, words=words, start_step=0, ring=ring)
    counters = timed([step(through, target)], reads=[transfer])
    assert counters["cycles_total"] - counters["cycles_stall_load"] <= one + LATENCY + 10
    assert counters["cycles_stall_ring"] >= LATENCY
    counters = timed([step(source, through)], writes=[transfer])
    spent = counters["cycles_stall_load"] + counters["cycles_stall_drain"]
    assert counters["cycles_total"] - spent <= one + 2
    assert counters["cycles_stall_drain"] <= LATENCY + 30


#: What gates, rings and sequencer do alone is proven in `tests/formal`.
BUGS = {
    "spill before the operator is done": (
        transfer_engine,
        Issue,
        "(self.computed > row.start_step) |",
        "(self.begun > row.start_step) |",
    ),
    "fetch before its slot": (
        transfer_engine,
        Issue,
        "(self.computed > row.start_step) |",
        "(self.computed >= row.start_step) |",
    ),
    "transfer complete when it is asked for": (
        body_module,
        ReadEngine,
        "self._begin(gate.finished)",
        "self._begin(self.i.valid & self.i.ready)",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bug_corrupts_data(bug, monkeypatch):
    module, original, old, new = BUGS[bug]
    monkeypatch.setattr(module, original.__name__, mutant(original, old, new))

    def some_programs():
        for seed in range(12):
            maker = RandomProgram(seed)
            check(maker.make(), maker.sources, seed=seed, stall=0.3 * (seed % 2), limit=4_000)

    with pytest.raises(AssertionError):  # wrong data, or stuck
        some_programs()
