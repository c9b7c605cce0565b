"""The whole scheduler behind its AXI port: random programs compute their dataflow under any memory stalls."""

import functools
import random
from dataclasses import dataclass

import pytest

from hw.lib.place import InlinePlacer
from hw.scheduler.config import SchedulerConfig, frozen
from hw.scheduler.core import transfer_engine
from hw.scheduler.core.transfer_engine import ReadEngine, TransferIssue
from hw.scheduler.kernel import body as body_module
from hw.scheduler.kernel.arguments import CAUSES
from hw.scheduler.kernel.body import SchedulerBody
from hw.scheduler.program.image import encode, record_bytes
from hw.scheduler.program.program import CoreWord, OperandWord, SchedulerProgram, StepWord, TransferWord, Via
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.timeline import predict
from tests.support.gateware.axi_memory import AxiMemory, untouched
from tests.support.gateware.streams import simulate
from tests.support.program.example import example_program
from tests.support.program.random_programs import RandomProgram, interpret
from tests.support.proofs.mutants import mutant

BASE, IMAGE = 0x1_0000_1000, 0x2_0000_0000
SOAK = pytest.mark.soak


@functools.lru_cache(maxsize=4)
def built(config, *_):
    """Return the body of a shape, the same one each time: its simulator is compiled once.

    The parts that a seeded bug is in are given too, so that a body with a bug is another one.
    """
    return SchedulerBody(config, InlinePlacer())


@dataclass(frozen=True, kw_only=True)
class OperatorCall:
    """One launch: the program, where its region and its image lie, and cycles from the done before it."""

    program: SchedulerProgram
    base: int = BASE
    image: int = IMAGE
    idle: int = 2


def run(config, content, *calls, stall=0.0, latency=(1, 12), seed=0, limit=60_000):
    """Launch programs, frozen ones where the shape has one, with ``content`` (words) in the first region.

    Nothing is reset from the first launch to the last, which is looked at in every cycle.  Gives the memory,
    and the counters of each launch.
    """
    parts = (transfer_engine.TransferIssue, body_module.ReadEngine)
    # A frozen program cannot be a key of the cache.
    body = built(config, *parts) if config.program is None else built.__wrapped__(config)
    memory = AxiMemory(body.gmem0, stall=stall, latency=latency, seed=seed)
    size = config.word_bytes
    for address, word in content.items():
        memory.bytes.update(enumerate(word.to_bytes(size, "little"), BASE + address * size))
    images = [encode(call.program) for call in calls]
    outcomes = []

    async def host(ctx):
        async def tick():
            _, reset, done = await ctx.tick().sample(body.done)
            assert not reset
            return done

        for call, image in zip(calls, images, strict=True):
            for _ in range(call.idle - 1):
                assert not await tick()
            ctx.set(body.args.memory, call.base)
            if config.program is None:
                memory.bytes.update(enumerate(image, call.image))
                ctx.set(body.args.program, call.image)
                ctx.set(body.args.program_records, len(image) // record_bytes(size))
            ctx.set(body.start, 1)
            await tick()
            ctx.set(body.start, 0)
            cycles = 1
            while not await tick():
                cycles += 1
            done = {name: body.counters[name] for name, _ in body.counters.shape()}
            await tick()
            counters = {name: ctx.get(counter) for name, counter in done.items()}
            assert counters["cycles_total"] == cycles
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
    memory, outcomes = run(config, content, *[OperatorCall(program=program)] * launches, **options)
    for address, word in interpret(program, content).items():
        at = BASE + address * program.word_bytes
        assert memory.content(at, program.word_bytes) == word.to_bytes(program.word_bytes, "little"), address
    for counters in outcomes:
        check_counters(counters, program, config)


def check_counters(counters, program, config):
    """Compare bytes and steps with the program, and the parts of the time with the whole."""
    loaded = 0 if config.program else len(encode(program))
    assert counters["gmem0_read_bytes"] == loaded + program.read_bytes
    assert (counters["cycles_stall_load"] > 0) == (loaded > 0)
    assert counters["gmem0_write_bytes"] == program.write_bytes
    assert counters["steps_total"] == len(program.steps)
    parts = ["cycles_busy", *(f"cycles_stall_{cause}" for cause in CAUSES), "cycles_idle"]
    assert sum(counters[part] for part in parts) == counters["cycles_total"]


def shape(program, **fields):
    """Return a shape of a few words and rows that loads ``program``."""
    small = {"max_steps": 15, "max_operands": 63, "max_transfers": 63, "banks": 4}
    size = program.word_bytes
    sizes = {"scratchpad_bytes": 128 * size, "max_operator_bytes": 255 * size, "max_region_bytes": 1 << 16}
    return SchedulerConfig(word_bytes=size, **{**small, **sizes, **fields})


#: Shapes that sequences of programs run on, beside that of `shape`: bytes of a word, then fields.
SHAPES = {
    "two cores": (8, {}),
    "narrow words": (4, {"banks": 2, "cores": 1, "memory": "block"}),
    "wide words": (32, {"banks": 8, "max_region_bytes": 1 << 15}),
    "three cores": (16, {"cores": 3, "banks": 8, "max_steps": 8, "max_region_bytes": 1 << 14}),
}
LAUNCHES = 5


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=[SOAK] if seed or name == "three cores" else [])
        for name in SHAPES
        for seed in range(13)
    ],
)
def test_programs_one_after_another(name, seed):
    """A launch keeps nothing of those before: random programs, long and short, some again, with no reset.

    They share two regions of the memory and two places of images, so that stale data can be read.
    """
    word_bytes, fields = SHAPES[name]
    rng = random.Random(f"{name} {seed}")
    calls = []
    for number in range(LAUNCHES):
        maker = RandomProgram(
            rng.getrandbits(32),
            word_bytes=word_bytes,
            steps=rng.choice((1, 3, 8)),
            cores=min(2, fields.get("cores", 2)),
        )
        calls.append(
            OperatorCall(
                program=rng.choice(calls).program if number == LAUNCHES - 1 else maker.make(),
                base=BASE + rng.randrange(2) * 0x10000,
                image=IMAGE + rng.randrange(2) * 0x1000,
                idle=rng.choice((1, 1, 2, 9)),
            )
        )
    config = shape(calls[0].program, **fields)
    stall = (0.0, 0.3, 0.7)[(seed + len(name)) % 3]
    memory, outcomes = run(config, {}, *calls, stall=stall, seed=seed, limit=30_000)
    assert len(outcomes) == LAUNCHES
    words = max(call.program.memory_words for call in calls)
    held = {
        base: {
            address: int.from_bytes(
                map(untouched, range(base + address * word_bytes, base + (address + 1) * word_bytes)),
                "little",
            )
            for address in range(words)
        }
        for base in {call.base for call in calls}
    }
    for call, counters in zip(calls, outcomes, strict=True):
        held[call.base] |= interpret(call.program, held[call.base])
        check_counters(counters, call.program, config)
    for base, content in held.items():
        expected = b"".join(word.to_bytes(word_bytes, "little") for word in content.values())
        assert memory.content(base, len(expected)) == expected


@pytest.mark.parametrize("word_bytes", [pytest.param(4, marks=SOAK), 32])
def test_example(word_bytes):
    program = example_program(word_bytes)
    sources = [(read.dram_address, read.words) for read in program.reads if read.start_step != 3]
    check(program, sources, config=shape(program, scratchpad_bytes=512 * word_bytes))
    check(program, sources, config=frozen(program), launches=3)


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
    program = SchedulerProgram(word_bytes=32, steps=tuple(steps), reads=tuple(reads), writes=tuple(writes))
    loading = shape(program, scratchpad_bytes=1 << 14, banks=8, cores=cores)
    content, call = dict.fromkeys(range(256), 0), OperatorCall(program=program)
    _, (counters,) = run(loading, content, call, latency=(LATENCY, LATENCY))
    predicted = predict(program, SIMPLE, image_words=len(encode(program)) // 32)
    assert predicted.load_cycles == counters["cycles_stall_load"]
    assert abs(predicted.cycles_total - counters["cycles_total"]) <= off  # a burst may wait a cycle less
    return counters


def step(*operands, compute_cycles=0, **waits):
    *inputs, result = operands
    core = CoreWord(operator=1, inputs=tuple(inputs), outputs=(result,), compute_cycles=compute_cycles)
    return StepWord(cores=(core,), **waits)


@pytest.mark.sample(1)
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
        TransferIssue,
        "(self.computed > row.start_step) |",
        "(self.begun > row.start_step) |",
    ),
    "fetch before its slot": (
        transfer_engine,
        TransferIssue,
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


@pytest.mark.sample(1)
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
