import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.errors import InputError
from hw.scheduler.check.check import check
from hw.scheduler.graph.bands import Cutter
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.graph.groups import buffer_bytes, candidates, group, through
from hw.scheduler.plan.array import compute_cycles
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.options import PlanOptions, When
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.groups import pipeline
from hw.scheduler.planner.groups.pipeline import improve, weigh
from hw.scheduler.planner.order.evaluate import IMPOSSIBLE, avoidable_words
from hw.scheduler.planner.planner import make_plan
from hw.scheduler.planner.transfers.transfers import least_step_cycles
from hw.scheduler.program.lower import lower
from tests.support.planner.networks import KERNEL, Network, chain, unet
from tests.support.planner.planned import MACS_PER_CYCLE, plan_of, random_residency


def residual():
    """Two convolutions beside an identity, and their sum."""
    network = Network("residual", 4, 16)
    first = network.conv("in", 8, 16)
    second = network.conv(network.conv(first, 16, 16), 8, 16)
    network.add("sum", [second, first], 8, 16, Access(axis=1, output_axis=1), output=True)
    return network.graph()


def test_who_can_share_the_array():
    graph = residual()
    # conv0 feeds two; the sum reads conv0's tensor, and so does conv1: they cannot all be one group.
    assert candidates(graph) == (("conv1", "conv2"), ("conv2", "sum3"))
    assert candidates(group(graph, ("conv1", "conv2"))) == ()
    assert candidates(group(graph, ("conv2", "sum3")), most_members=3) == ()
    chained = chain(4)
    assert candidates(chained) == (("conv0", "conv1"), ("conv1", "conv2"), ("conv2", "conv3"))
    two = group(chained, ("conv1", "conv2"))
    assert candidates(two) == ()
    assert candidates(two, most_members=3) == (("conv0", "conv1+conv2"), ("conv1+conv2", "conv3"))


def test_an_operand_that_is_needed_whole_is_not_passed_on():
    tensors = (
        Tensor(name="x", size_bytes=64, shape=(8, 8), kind=TensorKind.INPUT),
        Tensor(name="y", size_bytes=64, shape=(8, 8)),
        Tensor(name="z", size_bytes=64, shape=(8, 8), kind=TensorKind.OUTPUT),
    )
    operators = (
        Operator(name="f", kind="conv", inputs=("x",), outputs=("y",), accesses={"x": Access()}),
        Operator(name="g", kind="sort", inputs=("y",), outputs=("z",)),
    )
    assert candidates(Graph(name="g", tensors=tensors, operators=operators)) == ()


def test_a_group_is_what_its_members_are_together():
    graph = residual()
    grouped = group(graph, ("conv2", "sum3"))
    operator = grouped.operators[-1]
    assert [each.name for each in grouped.operators] == ["conv0", "conv1", "conv2+sum3"]
    assert (operator.inputs, operator.outputs) == (("conv1_out", "conv0_out"), ("sum3_out",))
    assert operator.members == graph.operators[2:]
    assert operator.macs == sum(member.macs for member in operator.members)
    assert [tensor.name for tensor in operator.inner] == ["conv2_out"]
    assert "conv2_out" not in grouped.tensor
    # The sum needs a row, and one is made meanwhile: two rows of 8 x 16 bytes.
    assert operator.fifo_bytes == 2 * 8 * 16
    assert operator.accesses["conv1_out"] == KERNEL
    assert operator.members[1].inputs == ("conv2_out", "conv0_out")
    # In every listed order a member reads the previous member's tensor first.
    swapped = replace(graph.operators[3], inputs=("conv0_out", "conv2_out"))
    other = group(replace(graph, operators=(*graph.operators[:3], swapped)), ("conv2", "sum3"))
    assert other.operators[-1] == operator
    three = group(group(chain(4), ("conv0", "conv1")), ("conv0+conv1", "conv2"))
    assert three.operators[0].name == "conv0+conv1+conv2"
    assert dict(buffer_bytes(three.operators[0], 32)) == {"conv0_out": 512, "conv1_out": 512}
    assert three.operators[0].fifo_bytes == 1024
    # Three kernels of three rows in a row reach over seven.
    assert three.operators[0].accesses["in"] == Access(axis=1, output_axis=1, kernel=7, pad=3)
    in_steps = group(group(chain(4), ("conv1", "conv2")), ("conv0", "conv1+conv2"))
    assert in_steps.operators[0].members == three.operators[0].members
    assert in_steps.operators[0].inner == three.operators[0].inner


accesses = st.builds(
    Access,
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    pad=st.integers(0, 3),
    up=st.sampled_from((1, 1, 2, 3)),
)


@given(first=accesses, second=accesses)
def test_rows_through_two_operators(first, second):
    """Far from the borders, an output row names all rows that the rows between name, and few more."""
    extent, both = 1000, through(first, second)
    for row in range(100, 112):
        begin, end = second.rows(row, row + 1, extent)
        needed = first.rows(begin, end, extent)
        named = both.rows(row, row + 1, extent)
        assert named[0] <= needed[0] <= needed[1] <= named[1]
        if first.up == second.up == 1:
            assert named == needed
        else:
            assert (named[1] - named[0]) - (needed[1] - needed[0]) <= 2 + 2 * first.stride


@pytest.mark.parametrize("seed", range(12))
def test_plans_with_groups_are_valid(seed):
    graph = unet(side=32, base=8, levels=2)
    for pair in (("conv3", "conv4"), ("conv7", "up8"), ("cat9", "conv10"), ("conv15", "conv16")):
        graph = group(graph, pair)
    problem = Problem(graph=graph)
    order = range(problem.operator_count)
    residency = random_residency(problem, order, seed)
    cycles = least_step_cycles(problem, order, MACS_PER_CYCLE)
    plan = plan_of(problem, order, residency, step_cycles=cycles)
    assert len(plan.fifos) == 4
    assert check(json.loads(plan_to_json(plan))) == []


def test_cycles_of_a_group():
    graph = chain(2, side=32, channels=4)  # tensors of 128 words, 147456 multiply-accumulates each
    grouped = group(graph, ("conv0", "conv1"))
    (operator,) = grouped.operators
    assert compute_cycles(operator, 4096) == 72 == sum(compute_cycles(one, 4096) for one in graph.operators)
    assert least_step_cycles(Problem(graph=grouped), [0], 4096) == (128,)
    assert least_step_cycles(Problem(graph=graph), [0, 1], 4096) == (128, 128)
    # The sum reads the previous member's tensor, then its other operand.
    tail = group(residual(), ("conv2", "sum3"))
    assert least_step_cycles(Problem(graph=tail), [0, 1, 2], 10**9) == (64, 128, 128 + 64)


def words_and_steps(graph, options):
    problem = Problem(graph=graph)
    words = avoidable_words(problem, range(problem.operator_count), options.capacity, streaming=False)
    return None if words >= IMPOSSIBLE else (words, problem.operator_count)


def improved(monkeypatch, graph, options, measure):
    """Return the result for a graph with another weighing function."""
    monkeypatch.setattr(pipeline, "weigh", lambda found, *_: measure(found))
    return improve(graph, options)


def test_groups_are_chosen_for_bytes_first(monkeypatch):
    graph = chain(4, side=32, channels=4)
    size = 32 * 32 * 4
    options = PlanOptions(scratchpad_bytes=size + size // 2, streaming=When.NEVER)
    # Two whole tensors do not fit, and groups of two have two as well.
    assert improved(monkeypatch, graph, options, lambda found: words_and_steps(found, options)) is graph
    options = PlanOptions(scratchpad_bytes=2 * size + 512, streaming=When.NEVER)
    found = improved(monkeypatch, graph, options, lambda found: words_and_steps(found, options))
    assert [operator.name for operator in found.operators] == ["conv0+conv1", "conv2+conv3"]


def test_a_group_that_costs_bytes_is_not_made(monkeypatch):
    """Both members' other tensors at once are too much: one pair pays, the other does not."""
    network = Network("two", 4, 32)
    first = network.conv(network.conv("in", 4, 32), 4, 32)
    big = network.conv(first, 64, 32)
    wide = network.conv(big, 64, 32)
    network.conv(wide, 4, 32, output=True)
    graph = network.graph()
    options = PlanOptions(scratchpad_bytes=32 * 32 * (64 + 64), streaming=When.NEVER)
    tried = []

    def measure(found):
        tried.append(found)
        return words_and_steps(found, options)

    found = improved(monkeypatch, graph, options, measure)
    best = min(
        (words_and_steps(one, options) or (10**9,), [operator.name for operator in one.operators])
        for one in every_way(graph)
    )
    assert words_and_steps(found, options) == best[0]
    assert len(tried) <= 20


def every_way(graph):
    """A graph with each set of pairs that exclude each other."""
    pairs = candidates(graph)
    for count in range(len(pairs) + 1):
        for some in itertools.combinations(pairs, count):
            if len({name for pair in some for name in pair}) == 2 * count:
                grouped = graph
                for pair in some:
                    grouped = group(grouped, pair)
                yield grouped


def test_trials_are_limited(monkeypatch):
    graph = chain(200, side=4, channels=1)
    options = PlanOptions(scratchpad_bytes=4096)
    count = 0

    def measure(found):
        nonlocal count
        count += 1
        return (len(found.operators) * 0,)

    assert improved(monkeypatch, graph, options, measure) is graph
    assert count == 1 + 48


def test_weight_of_a_graph():
    graph = chain(4, side=32, channels=4)
    size = 32 * 32 * 4
    ample = PlanOptions(scratchpad_bytes=4 * size)
    words, cycles = weigh(graph, ample)
    grouped = weigh(group(graph, ("conv1", "conv2")), ample)
    assert words == grouped[0] == 0
    assert grouped[1] == cycles - 128
    assert weigh(graph, PlanOptions(scratchpad_bytes=64)) is None
    # Half of each tensor does not fit: streaming it instead is paid for.
    tight = PlanOptions(scratchpad_bytes=size + size // 2)
    assert weigh(graph, tight)[0] > 0
    pairs = improve(graph, tight)
    assert weigh(pairs, tight) < weigh(graph, tight)
    assert any(operator.members for operator in pairs.operators)


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_as_many_neighbours_share_the_array_as_there_are_cores(cores):
    graph = chain(4, side=32, channels=4)
    plan = make_plan(graph, PlanOptions(scratchpad_bytes=3 * 1024, tiling=When.NEVER, cores=cores))
    assert max(len(operator.members) or 1 for operator in plan.graph.operators) == cores
    assert lower(plan).cores == cores
    assert check(json.loads(plan_to_json(plan))) == []


@pytest.mark.parametrize("cores", [0, 5])
def test_a_number_of_cores_there_is_no_hardware_for(cores):
    with pytest.raises(InputError, match="cores must be"):
        make_plan(chain(2), PlanOptions(scratchpad_bytes=6 * 1024, cores=cores))


def test_wrong_groups():
    assert "conv3_out" not in Cutter(group(chain(4), ("conv2", "conv3"))).rows
    operator = group(chain(2), ("conv0", "conv1")).operators[0]
    with pytest.raises(InputError, match="inner tensors of operator 'f' must be what its members hand on"):
        Operator(
            name="f", kind="group", inputs=operator.inputs, outputs=operator.outputs,
            members=operator.members,
        )  # fmt: skip
