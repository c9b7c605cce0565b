import itertools

from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.cut_vertices import join, segments


def graph(operators, *, sizes=None, kinds=None):
    """Operators as (inputs, outputs) in letters; letters nobody writes are inputs, nobody reads outputs."""
    read = {letter for inputs, _ in operators for letter in inputs}
    written = {letter for _, outputs in operators for letter in outputs}
    tensors = []
    for letter in sorted(read | written):
        kind = TensorKind.ACTIVATION
        if letter not in written:
            kind = TensorKind.INPUT
        elif letter not in read:
            kind = TensorKind.OUTPUT
        kind = (kinds or {}).get(letter, kind)
        tensors.append(Tensor(name=letter, size_bytes=32 * (sizes or {}).get(letter, 1), kind=kind))
    made = [
        Operator(name=f"{inputs}>{outputs}", kind="x", inputs=tuple(inputs), outputs=tuple(outputs))
        for inputs, outputs in operators
    ]
    return Problem(graph=Graph(name="g", tensors=tuple(tensors), operators=tuple(made)))


def spans(problem, capacity=None):
    return [part.operators for part in segments(problem, capacity)]


def test_a_chain_is_cut_after_every_operator_but_the_last():
    assert spans(graph([("a", "b"), ("b", "c"), ("c", "d")])) == [(0,), (0, 1), (1, 2)]


def test_a_residual_block_stays_whole():
    problem = graph([("a", "b"), ("b", "c"), ("c", "d"), ("bd", "e"), ("e", "f")])
    assert spans(problem) == [(0,), (0, 1, 2, 3), (3, 4)]


def test_parallel_branches_are_joined_again_at_the_cut_vertex():
    problem = graph([("a", "b"), ("b", "c"), ("b", "d"), ("cd", "e"), ("e", "f")])
    assert spans(problem) == [(0,), (0, 1, 2, 3), (3, 4)]


def test_no_cut_where_something_else_is_needed_on_both_sides():
    # w is read before and after the second operator; s is an output of the first that the last one reads.
    assert spans(graph([("aw", "b"), ("b", "c"), ("cw", "d")])) == [(0, 1, 2)]
    assert spans(graph([("a", "bs"), ("b", "c"), ("cs", "d")])) == [(0,), (0, 1, 2)]
    assert spans(graph([("a", "b"), ("bw", "c"), ("cw", "d")])) == [(0,), (0, 1, 2)]


def test_no_cut_beside_an_operator_that_may_run_on_either_side():
    assert spans(graph([("a", "b"), ("x", "y"), ("b", "c")])) == [(0, 1, 2)]


def test_a_cut_vertex_that_must_stream_is_not_cut_at():
    problem = graph([("a", "b"), ("b", "c"), ("c", "d")], sizes={"c": 5})
    assert spans(problem, 6) == [(0,), (0, 1), (1, 2)]
    assert spans(problem, 5) == [(0,), (0, 1, 2)]


def test_the_part_has_the_kinds_and_sizes_of_the_whole():
    problem = graph([("a", "bs"), ("bs", "c"), ("cw", "d")], sizes={"b": 3}, kinds={"c": TensorKind.OUTPUT})
    first, second, third = segments(problem)
    assert [t.kind.value for t in first.problem.graph.tensors] == ["input", "output", "output"]
    assert [t.kind.value for t in second.problem.graph.tensors] == ["activation", "output", "activation"]
    assert [t.kind.value for t in third.problem.graph.tensors] == ["output", "output", "input"]
    assert second.problem.size == (3, 1, 1)
    assert second.problem.inputs == ((), (0, 2))
    assert (first.entry, second.entry, third.entry) == (False, True, True)


def test_join_leaves_each_entry_out_once():
    problem = graph([("a", "b"), ("b", "c"), ("b", "d"), ("cd", "e"), ("e", "f")])
    parts = segments(problem)
    assert join(parts, [(0,), (0, 2, 1, 3), (0, 1)]) == (0, 2, 1, 3, 4)


def test_every_cut_vertex_is_at_its_place_in_every_order():
    problem = graph([("a", "b"), ("b", "c"), ("b", "d"), ("cd", "e"), ("e", "fg"), ("f", "h"), ("gh", "i")])
    cuts = [part.operators[-1] for part in segments(problem)][:-1]
    assert cuts == [0, 3, 4]
    for order in itertools.permutations(range(problem.operator_count)):
        place = {operator: step for step, operator in enumerate(order)}
        if all(
            place[other] < place[operator]
            for operator in order
            for other in order
            if problem.predecessors[operator] >> other & 1
        ):
            assert [place[operator] for operator in cuts] == cuts
