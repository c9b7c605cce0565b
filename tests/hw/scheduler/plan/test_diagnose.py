import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.diagnose import diagnose, refuse, refuse_too_large
from hw.scheduler.plan.options import PlanOptions, When
from hw.scheduler.plan.problem import Problem
from tests.support.planner.networks import chain
from tests.support.planner.planned import random_graph


def options(problem, words, streaming):
    return PlanOptions(
        scratchpad_bytes=max(1, words * problem.word_bytes),
        word_bytes=problem.word_bytes,
        streaming=When.AUTO if streaming else When.NEVER,
    )


def least_by_trying(problem, operator, tensors, streaming):
    """Words for some operands, over all ways of streaming that can run."""
    best = None
    for choice in itertools.product((False, True), repeat=len(tensors)):
        passing = [tensor for tensor, streams in zip(tensors, choice, strict=True) if streams]
        alone = any(problem.streams_alone(operator, tensor) for tensor in passing)
        if (passing and not streaming) or (alone and len(passing) > 1):
            continue
        words = problem.fifo[operator] + sum(
            problem.window(operator, tensor) if tensor in passing else problem.size[tensor]
            for tensor in tensors
        )
        best = words if best is None else min(best, words)
    return best


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), streaming=st.booleans(), share=st.floats(0.2, 1.2))
def test_the_conflict_is_the_smallest_and_what_suffices_does(seed, streaming, share):
    problem = Problem(graph=random_graph(seed, operators=6))
    operands = [(*inputs, *outputs) for inputs, outputs in zip(problem.inputs, problem.outputs, strict=True)]
    needs = [
        least_by_trying(problem, operator, tensors, streaming) for operator, tensors in enumerate(operands)
    ]
    capacity = max(1, int(share * max(needs)))
    found = diagnose(problem, options(problem, capacity, streaming))
    if max(needs) <= capacity:
        assert found is None
        return
    assert found.sufficient_bytes == max(needs) * problem.word_bytes
    assert diagnose(problem, options(problem, max(needs), streaming)) is None
    assert diagnose(problem, options(problem, max(needs) - 1, streaming)) is not None
    smallest = min(
        count
        for operator, tensors in enumerate(operands)
        for count in range(len(tensors) + 1)
        for some in itertools.combinations(tensors, count)
        if least_by_trying(problem, operator, some, streaming) > capacity
    )
    assert len(found.tensors) == smallest
    assert found.needed_bytes > capacity * problem.word_bytes
    names = [tensor.name for tensor in problem.graph.tensors]
    number = [operator.name for operator in problem.graph.operators].index(found.operator)
    chosen = [names.index(name) for name in found.tensors]
    words = least_by_trying(problem, number, chosen, streaming)
    assert found.needed_bytes == words * problem.word_bytes
    assert problem.least_words(number, chosen, streaming=streaming) == words


def test_of_many_operands_none_of_the_conflict_can_be_left_out():
    count = 20
    tensors = [
        Tensor(name=f"t{index}", size_bytes=32 * (1 + index), kind=TensorKind.INPUT) for index in range(count)
    ]
    out = Tensor(name="y", size_bytes=32, kind=TensorKind.OUTPUT)
    operator = Operator(
        name="sum", kind="add", inputs=tuple(tensor.name for tensor in tensors), outputs=("y",)
    )
    problem = Problem(graph=Graph(name="g", tensors=(*tensors, out), operators=(operator,)))
    found = diagnose(problem, options(problem, 100, streaming=False))
    assert found.sufficient_bytes == 32 * (sum(range(1, 21)) + 1)
    words = [32 * (1 + int(name[1:])) for name in found.tensors]
    assert found.needed_bytes == sum(words) > 3200
    assert all(sum(words) - each <= 3200 for each in words)


def test_the_error_names_operator_tensors_and_what_would_do():
    problem = Problem(graph=chain(2, side=64, channels=4))
    with pytest.raises(InputError) as caught:
        refuse(problem, options(problem, 600, streaming=False))
    assert str(caught.value) == (
        "scratchpad must be at least 32768 bytes (1536 with streaming) for whole operators, or fewer where "
        "they can be cut into bands; operator 'conv0' needs 32768 bytes "
        "at once for 'in' (16384 bytes) and 'conv0_out' (16384 bytes), not '19200 bytes'"
    )
    with pytest.raises(
        InputError, match=r"must be at least 1536 bytes for whole .*; operator 'conv0' needs 1536 bytes"
    ):
        refuse(problem, options(problem, 40, streaming=True))
    with pytest.raises(InputError, match=r"for 'in' \(16384 bytes\), not '512 bytes'"):
        refuse(problem, options(problem, 16, streaming=True))


def test_buffers_of_a_group_alone_may_be_too_much():
    tensors = (
        Tensor(name="x", size_bytes=32, kind=TensorKind.INPUT),
        Tensor(name="y", size_bytes=32, kind=TensorKind.OUTPUT),
    )
    operator = Operator(name="f", kind="k", inputs=("x",), outputs=("y",), fifo_bytes=3200)
    problem = Problem(graph=Graph(name="g", tensors=tensors, operators=(operator,)))
    found = diagnose(problem, options(problem, 99, streaming=False))
    assert (found.tensors, found.needed_bytes, found.sufficient_bytes) == ((), 3200, 3264)
    with pytest.raises(InputError, match="for the buffers between its members"):
        refuse(problem, options(problem, 99, streaming=False))


def test_when_only_cutting_is_left():
    problem = Problem(graph=chain(2, side=64, channels=4))
    with pytest.raises(InputError, match="can be cut finely enough, not '65536 bytes'"):
        refuse(problem, options(problem, 2048, streaming=False))


def test_a_network_must_fit_the_memory_it_lies_in():
    graph = chain(2, side=64, channels=4)
    sizes = {tensor.name: tensor.size_bytes for tensor in graph.tensors}
    assert sizes == dict.fromkeys(sizes, 16384)
    refuse_too_large(graph, 2 * 16384, "the memory")
    with pytest.raises(InputError, match="caches and outputs must be at most 32767, the memory, not 32768"):
        refuse_too_large(graph, 2 * 16384 - 1, "the memory")
    with pytest.raises(InputError, match="size_bytes of tensor 'in' must be at most 16383, the memory"):
        refuse_too_large(graph, 16383, "the memory")
