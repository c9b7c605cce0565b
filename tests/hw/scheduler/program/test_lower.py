"""Plans as programs: executed word by word, their results must equal those of the dataflow."""

import dataclasses
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.scheduler.check.check import check
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.plan import Mode
from hw.scheduler.plan.problem import Problem
from hw.scheduler.program.lower import lower
from hw.scheduler.program.program import SchedulerProgram, Via
from sim.golden.scheduler import execute, to_words
from tests.support.planner.graphs import pipelined_graph, random_graph
from tests.support.planner.naive_plan import naive_plan
from tests.support.program.random_programs import interpret, with_operand

WORD_BYTES = 32


def random_plan(seed, *, streaming):
    """A naive plan just above the largest operator's need, so that tensors come and go."""
    graph = random_graph(seed, 9)
    problem = Problem(graph=graph, word_bytes=WORD_BYTES)
    rng = random.Random(seed)
    streams = []
    for number, operator in enumerate(graph.operators):
        for name in (*operator.inputs, *operator.outputs):
            alone = problem.streams_alone(number, graph.tensors.index(graph.tensor[name]))
            if streaming and not alone and rng.random() < 0.3:
                streams.append((operator.name, name))
    room = (max(problem.working_set) + 6) * WORD_BYTES
    return naive_plan(graph, room, word_bytes=WORD_BYTES, streams=streams)


def sources_of(program, seed=0):
    generator = np.random.default_rng(seed)
    size = {tensor.name: tensor.size_bytes for tensor in program.dataflow.sources}
    return {
        name: to_words(generator.integers(0, 256, count, np.uint8), program.word_bytes)
        for name, count in size.items()
    }


def as_numbers(words):
    return [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in words]


def expected(program, sources):
    """The words that the program must write to memory, by word address."""
    home = program.dataflow.homes
    saved = execute(program.dataflow, sources, program.word_bytes)
    return {
        home[name] + offset: word
        for name, words in saved.items()
        for offset, word in enumerate(as_numbers(words))
    }


def written(program, sources, *, early_reads=False):
    """The words it writes; None when it reads a word that was never written."""
    home = program.dataflow.homes
    memory = {
        home[name] + offset: word
        for name, words in sources.items()
        for offset, word in enumerate(as_numbers(words))
    }
    try:
        return interpret(program, memory, early_reads=early_reads)
    except KeyError:
        return None


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 100_000), streaming=st.booleans())
def test_programs_of_random_plans_compute_the_dataflow(seed, streaming):
    plan = random_plan(seed, streaming=streaming)
    program = lower(plan)
    sources = sources_of(program, seed)
    assert written(program, sources) == expected(program, sources)
    assert written(program, sources, early_reads=True) == expected(program, sources)
    assert program.read_bytes == plan.totals.offchip_read_bytes
    assert program.write_bytes == plan.totals.offchip_write_bytes
    assert program.memory_words * WORD_BYTES <= plan.memory_bytes
    assert program.scratchpad_words * WORD_BYTES <= plan.scratchpad_bytes


@pytest.mark.parametrize(
    "streams", [(), (("conv1+conv2", "skip"),), (("conv1+conv2", "a"), ("conv1+conv2", "skip"))]
)
def test_a_group_becomes_a_core_a_member(streams):
    plan = naive_plan(pipelined_graph(), 4 * 1024 + 512, streams=streams)
    assert check(json.loads(plan_to_json(plan))) == []
    program = lower(plan)
    assert program.cores == 2
    step = program.steps[1]
    assert len(step.cores) == 2
    (made,) = step.cores[0].outputs
    taken = step.cores[1].inputs
    assert made.via is Via.FIFO
    # A member after one that reads streams consumes that one's result before any other stream.
    assert [operand.via for operand in taken].count(Via.FIFO) == 1
    assert taken[0] == made
    assert [word.core for word in program.reads if word.ring] == list(range(2))[2 - len(streams) :]
    sources = sources_of(program)
    assert written(program, sources) == expected(program, sources)


# A fault in a program must show in the words it writes to memory.


def brings_new(program, read):
    """Whether a read puts words where they are not yet: no earlier stay of its tensor lay there."""
    same = [
        other
        for other in (*program.reads, *program.writes)
        if (other.address, other.dram_address) == (read.address, read.dram_address) and other != read
    ]
    return not read.ring and not same


def faults(program: SchedulerProgram):
    """Programs with one fault each, and its name."""
    for number, operand in enumerate(program.operands):
        if operand.via is Via.WHOLE:
            steps = with_operand(program, number, address=operand.address + 1)
            yield f"address of operand {number}", dataclasses.replace(program, steps=steps)
    for direction in ("reads", "writes"):
        transfers = getattr(program, direction)
        for number, transfer in enumerate(transfers):
            for name in ("address", "dram_address"):
                if name == "address" and transfer.ring:
                    continue  # the gates ignore it: the operand's ring counts, and so does the interpreter
                moved = dataclasses.replace(transfer, **{name: getattr(transfer, name) + 1})
                changed = (*transfers[:number], moved, *transfers[number + 1 :])
                yield f"{name} {number} of {direction}", dataclasses.replace(program, **{direction: changed})
    for number, step in enumerate(program.steps):
        # The last read a step waits for, when no step before waits for it: one fewer is one too few.
        before = program.steps[number - 1].wait_reads if number else 0
        if step.wait_reads > before and brings_new(program, program.reads[step.wait_reads - 1]):
            early = dataclasses.replace(step, wait_reads=step.wait_reads - 1)
            steps = (*program.steps[:number], early, *program.steps[number + 1 :])
            yield f"wait_reads of step {number}", dataclasses.replace(program, steps=steps)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_wrong_address_and_every_missed_read_shows(seed):
    plan = random_plan(seed, streaming=True)
    program = lower(plan)
    sources = sources_of(program)
    golden = expected(program, sources)
    assert written(program, sources) == golden
    kinds = set()
    for name, wrong in faults(program):
        kinds.add(name.split()[0])
        assert written(wrong, sources) != golden, name
    assert kinds == {"address", "dram_address", "wait_reads"}


def test_two_tensors_at_one_address_show():
    found = 0
    for seed in range(6):
        plan = random_plan(seed, streaming=False)
        program = lower(plan)
        sources = sources_of(program)
        golden = expected(program, sources)
        for number, episode in enumerate(plan.episodes):
            others = [
                other
                for other in plan.episodes
                if other.tensor != episode.tensor
                and other.first_step < episode.first_step < other.last_step
                and other.address != episode.address
            ]
            if not others:
                continue
            address = others[0].address
            episodes = list(plan.episodes)
            episodes[number] = dataclasses.replace(episode, address=address)
            transfers = [
                dataclasses.replace(transfer, scratchpad_address=address)
                if transfer.episode == number
                else transfer
                for transfer in plan.transfers
            ]
            wrong = lower(
                dataclasses.replace(plan, episodes=tuple(episodes), transfers=tuple(transfers)),
            )
            assert written(wrong, sources) != golden, (seed, number)
            found += 1
    assert found > 5


def test_operands_of_one_pipelined_step_that_overlap_show():
    """The second core writes while the first still reads: nothing may lie over anything else."""
    plan = naive_plan(pipelined_graph(), 4 * 1024 + 512)
    program = lower(plan)
    sources = sources_of(program)
    golden = expected(program, sources)
    (step,) = (number for number, each in enumerate(plan.steps) if each.mode is Mode.PIPELINED)
    lying = [
        number
        for number, episode in enumerate(plan.episodes)
        if episode.first_step <= step <= episode.last_step
    ]
    (fifo,) = plan.fifos
    wrong = {}
    for moved in lying:
        for other in lying:
            episode, below = plan.episodes[moved], plan.episodes[other]
            # On it, and on its last word alone.
            for address in (below.address, below.address + below.size_bytes - WORD_BYTES):
                if moved != other and address + episode.size_bytes <= plan.scratchpad_bytes:
                    wrong[f"{episode.tensor} on {below.tensor} at {address}"] = at(plan, moved, address)
        buffers = (dataclasses.replace(fifo, address=plan.episodes[moved].address),)
        wrong[f"buffers on {plan.episodes[moved].tensor}"] = dataclasses.replace(plan, fifos=buffers)
    assert len(wrong) > 5
    for name, bad in wrong.items():
        assert check(json.loads(plan_to_json(bad))), name
        assert written(lower(bad), sources) != golden, name


def at(plan, number, address):
    """The plan with one episode, and its transfers, at another address."""
    episodes = list(plan.episodes)
    episodes[number] = dataclasses.replace(episodes[number], address=address)
    transfers = tuple(
        dataclasses.replace(transfer, scratchpad_address=address) if transfer.episode == number else transfer
        for transfer in plan.transfers
    )
    return dataclasses.replace(plan, episodes=tuple(episodes), transfers=transfers)


def test_what_begins_too_early_or_ends_too_late_shows():
    """Each fault in one of the two extremes of timing."""
    kinds = {"read too early": 0, "write not waited for": 0}
    for seed in range(12):
        program = lower(random_plan(seed, streaming=True))
        sources = sources_of(program)
        golden = expected(program, sources)
        assert written(program, sources, early_reads=True) == golden
        for kind, wrong in hurried(program):
            shown = written(wrong, sources) != golden or written(wrong, sources, early_reads=True) != golden
            kinds[kind] += shown
            # A region that was free a step before, or a home nobody reads, bears it.
            assert shown or not needed(program, wrong), (seed, kind)
    assert all(count > 3 for count in kinds.values()), kinds


def hurried(program):
    """Programs with one read that may run a step too early, or one write that a step waits for too late."""
    for number, read in enumerate(program.reads):
        before = program.reads[number - 1].start_step if number else 0
        if not read.ring and read.start_step - 1 >= before:
            early = dataclasses.replace(read, start_step=read.start_step - 1)
            reads = (*program.reads[:number], early, *program.reads[number + 1 :])
            yield "read too early", dataclasses.replace(program, reads=reads)
    for number, step in enumerate(program.steps):
        before = program.steps[number - 1].wait_writes if number else 0
        if step.wait_writes > before:
            late = dataclasses.replace(step, wait_writes=step.wait_writes - 1)
            steps = (*program.steps[:number], late, *program.steps[number + 1 :])
            yield "write not waited for", dataclasses.replace(program, steps=steps)


def needed(program, wrong):
    """Whether the changed transfer meets another user of its words in the step it must not."""
    for read, early in zip(program.reads, wrong.reads, strict=True):
        if read != early:
            step = program.steps[early.start_step]
            used = [operand for core in step.cores for operand in core.operands]
            return any(
                operand.address < read.address + read.words and read.address < operand.address + operand.span
                for operand in used
            )
    for number, (step, late) in enumerate(zip(program.steps, wrong.steps, strict=True)):
        if step != late:
            write = program.writes[step.wait_writes - 1]
            made = [operand for core in program.steps[number].cores for operand in core.outputs]
            # A stream is out when its operator is done.
            return not write.ring and any(
                operand.address < write.address + write.words
                and write.address < operand.address + operand.span
                for operand in made
            )
    return False
