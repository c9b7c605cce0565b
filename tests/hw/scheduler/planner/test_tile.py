import itertools
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.scheduler.graph.bands import Cutter, row_axes
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.options import PlanOptions, When
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.bands.tile import repeated_words, tile
from hw.scheduler.planner.order.evaluate import avoidable_words
from hw.scheduler.planner.residency.stays import Stay, events_of, measure
from tests.support.planner.networks import chain, unet
from tests.support.planner.planned import random_graph


def split(graph, bands):
    return Cutter(graph).split(bands)


def two_by_two(rows, first, second):
    """Two operators in a chain, with two given accesses."""
    middle = max(1, rows * first.up // first.stride)
    last = max(1, middle * second.up // second.stride)
    extents = (rows, middle, last)
    kinds = (TensorKind.INPUT, TensorKind.ACTIVATION, TensorKind.OUTPUT)
    tensors = tuple(
        Tensor(name=name, size_bytes=32 * extent, shape=(extent, 32), kind=kind)
        for name, extent, kind in zip("xyz", extents, kinds, strict=True)
    )
    operators = (
        Operator(name="f", kind="k", inputs=("x",), outputs=("y",), accesses={"x": first}, macs=1001),
        Operator(name="g", kind="k", inputs=("y",), outputs=("z",), accesses={"y": second}, macs=77),
    )
    return Graph(name="two", tensors=tensors, operators=operators)


accesses = st.builds(
    Access,
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    pad=st.integers(0, 2),
    up=st.sampled_from((1, 1, 1, 2, 3)),
)


@settings(deadline=None, max_examples=150)
@given(
    rows=st.integers(3, 20),
    first=accesses,
    second=accesses,
    shares=st.tuples(*[st.floats(0, 1)] * 3),
)
def test_a_band_reads_just_the_bands_that_hold_a_row_it_needs(rows, first, second, shares):
    graph = two_by_two(rows, first, second)
    bands = {
        tensor.name: 1 + int(share * (tensor.shape[0] - 1))
        for tensor, share in zip(graph.tensors, shares, strict=True)
    }
    cut = split(graph, bands)
    begin, rows_of = {}, defaultdict(list)
    for tensor in cut.tensors:
        origin = tensor.origin or tensor.name
        begin[tensor.name] = sum(map(len, rows_of[origin]))
        rows_of[origin].append(range(begin[tensor.name], begin[tensor.name] + tensor.shape[0]))
    for tensor in graph.tensors:  # the bands are the tensor, in order
        assert [row for band in rows_of[tensor.name] for row in band] == list(range(tensor.shape[0]))
    for whole in graph.operators:
        (source,) = whole.inputs
        access, extent = whole.accesses[source], graph.tensor[source].shape[0]
        pieces = [operator for operator in cut.operators if operator.name.split("#")[0] == whole.name]
        assert sum(piece.macs for piece in pieces) == whole.macs
        for piece in pieces:
            made = cut.tensor[piece.outputs[0]]
            for row in range(made.shape[0]):
                needed = set(range(*access.rows(begin[made.name] + row, begin[made.name] + row + 1, extent)))
                found = set()
                for name in piece.inputs:
                    local = piece.accesses[name].rows(row, row + 1, cut.tensor[name].shape[0])
                    held = range(begin[name], begin[name] + cut.tensor[name].shape[0])
                    seen = {begin[name] + near for near in range(*local)}
                    assert needed & set(held) <= seen
                    found |= needed & set(held)
                assert found == needed
            first_row = begin[made.name]
            needed = set(range(*access.rows(first_row, first_row + made.shape[0], extent)))
            for name in piece.inputs:
                held = range(begin[name], begin[name] + cut.tensor[name].shape[0])
                assert needed & set(held)


def test_bands_keep_what_they_are_bands_of():
    graph = chain(2, side=8, channels=3)
    cut = split(graph, {"conv0_out": 4, "conv1_out": 2})
    assert [tensor.name for tensor in cut.tensors][:3] == ["in", "conv0_out#0", "conv0_out#1"]
    band = cut.tensor["conv0_out#1"]
    assert (band.shape, band.size_bytes, band.origin) == ((3, 2, 8), 48, "conv0_out")
    # Rows 4 to 7 need rows 3 to 8: bands 1 (2, 3), 2 and 3.
    last = next(operator for operator in cut.operators if operator.name == "conv1#1")
    assert last.inputs == ("conv0_out#1", "conv0_out#2", "conv0_out#3")
    assert cut.tensor["conv1_out#1"].kind is TensorKind.OUTPUT
    # Output row 4 is the band's first: it needs row 3, the second of its first input.
    assert last.accesses["conv0_out#1"].rows(0, 1, 2) == (1, 2)


def test_the_order_of_bands_keeps_few_rows_alive():
    depth, side = 6, 32
    graph = chain(depth, side=side)
    names = [tensor.name for tensor in graph.tensors]
    cut = split(graph, dict.fromkeys(names, side))
    live = defaultdict(int)
    most = defaultdict(int)
    last_use = {name: users[-1].name for name, users in cut.consumers.items() if users}
    for operator in cut.operators:
        for name in operator.outputs:
            origin = cut.tensor[name].origin
            live[origin] += 1
            most[origin] = max(most[origin], live[origin])
        for name in operator.inputs:
            if last_use[name] == operator.name and cut.tensor[name].kind is TensorKind.ACTIVATION:
                live[cut.tensor[name].origin] -= 1
    # A kernel of three rows: no tensor ever has more than these and none waits.
    assert {name: most[name] for name in names[1:-1]} == dict.fromkeys(names[1:-1], 3)


def test_operators_that_are_not_cut_keep_their_order():
    graph = random_graph(5)
    assert split(graph, {}).operators == graph.operators
    assert split(graph, {}).tensors == graph.tensors


def test_what_is_needed_whole_is_read_in_all_its_bands():
    tensors = (
        Tensor(name="x", size_bytes=64, shape=(8, 8), kind=TensorKind.INPUT),
        Tensor(name="y", size_bytes=64, shape=(8, 8)),
        Tensor(name="z", size_bytes=8, shape=(8,), kind=TensorKind.OUTPUT),
    )
    operators = (
        Operator(name="f", kind="conv", inputs=("x",), outputs=("y",), accesses={"x": Access()}),
        Operator(name="g", kind="sum", inputs=("y",), outputs=("z",)),
    )
    graph = Graph(name="g", tensors=tensors, operators=operators)
    assert row_axes(graph) == {"x": 0, "y": 0}
    cut = split(graph, {"y": 4})
    assert cut.operators[-1].inputs == tuple(f"y#{band}" for band in range(4))
    assert not cut.operators[-1].accesses


def test_outputs_of_one_operator_are_cut_alike():
    tensors = (
        Tensor(name="x", size_bytes=64, shape=(8, 8), kind=TensorKind.INPUT),
        *(Tensor(name=name, size_bytes=64, shape=(8, 8), kind=TensorKind.OUTPUT) for name in "yz"),
    )
    operator = Operator(name="f", kind="conv", inputs=("x",), outputs=("y", "z"), accesses={"x": Access()})
    graph = Graph(name="g", tensors=tensors, operators=(operator,))
    cut = split(graph, {"y": 4, "z": 4})
    assert [band.outputs for band in cut.operators] == [(f"y#{i}", f"z#{i}") for i in range(4)]


def test_a_product_is_cut_along_the_rows_its_reader_takes():
    """Rows of a need rows of x; its columns need columns of the weights: the reader decides."""
    product = {"x": Access(axis=0, output_axis=0), "w": Access(axis=1, output_axis=1)}

    def graph_of(axis):
        tensors = (
            Tensor(name="x", size_bytes=64, shape=(8, 8), kind=TensorKind.INPUT),
            Tensor(name="w", size_bytes=128, shape=(8, 16), kind=TensorKind.WEIGHT),
            Tensor(name="a", size_bytes=128, shape=(8, 16)),
            Tensor(name="y", size_bytes=128, shape=(8, 16), kind=TensorKind.OUTPUT),
        )
        operators = (
            Operator(name="f", kind="matmul", inputs=("x", "w"), outputs=("a",), accesses=product),
            Operator(
                name="g", kind="add", inputs=("a",), outputs=("y",),
                accesses={"a": Access(axis=axis, output_axis=axis)},
            ),
        )  # fmt: skip
        return Graph(name="g", tensors=tensors, operators=operators)

    rows = split(graph_of(0), {"x": 2, "a": 2, "w": 2})
    assert [band.inputs for band in rows.operators if band.kind == "matmul"] == [
        ("x#0", "w#0", "w#1"),
        ("x#1", "w#0", "w#1"),
    ]
    columns = split(graph_of(1), {"w": 2, "a": 2})
    assert columns.tensor["a#1"].shape == (8, 8)
    assert [band.inputs for band in columns.operators if band.kind == "matmul"] == [
        ("x", "w#0"),
        ("x", "w#1"),
    ]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), room=st.floats(0, 1))
def test_the_estimate_is_of_a_real_plan(seed, room):
    """Never below the best of all choices of gaps, and nothing when everything fits."""
    problem = Problem(graph=random_graph(seed, operators=5))
    order = tuple(range(problem.operator_count))
    least = max(problem.working_set)
    gaps = [
        (tensor, *pair)
        for tensor in range(problem.tensor_count)
        for pair in itertools.pairwise(events_of(problem, order, tensor))
    ]
    capacity = least + int(room * sum(problem.size))
    best = None
    for kept in itertools.product((False, True), repeat=len(gaps)):
        chosen = {gap for gap, keep in zip(gaps, kept, strict=True) if keep}
        found = measure(problem, order, _stays(problem, order, chosen), ())
        if found.peak_words <= capacity and (best is None or found.avoidable_words < best):
            best = found.avoidable_words
    words = avoidable_words(problem, order, capacity, streaming=False)
    assert words >= best
    assert (words == 0) or capacity < sum(problem.size)


def _stays(problem, order, chosen):
    stays = []
    for tensor in range(problem.tensor_count):
        first = None
        events = events_of(problem, order, tensor)
        for event, after in zip(events, [*events[1:], None], strict=True):
            first = event if first is None else first
            if (tensor, event, after) not in chosen:
                stays.append(Stay(tensor=tensor, first_step=first, last_step=event))
                first = None
    return stays


def total_words(graph, options):
    problem = Problem(graph=graph)
    return avoidable_words(problem, range(problem.operator_count), options.capacity, streaming=True)


@pytest.mark.parametrize(
    ("share", "greedy_kib", "most_kib"),
    [(0.75, 2048, 96), (0.5, 3072, 1024), pytest.param(0.25, 9216, 3300, marks=pytest.mark.soak)],
)
def test_a_unet_far_below_what_its_operators_need_whole(share, greedy_kib, most_kib):
    """Greedy keep-if-fits moves this many KiB with whole operators and streams."""
    graph = unet()
    required = max(Problem(graph=graph).working_set) * 32
    assert required == 2048 * 1024
    options = PlanOptions(scratchpad_bytes=int(share * required))
    coarse = tile(graph, options)
    bands = Counter(tensor.origin for tensor in coarse.tensors if tensor.origin)
    repeated = repeated_words(graph, bands, 32)
    once = sum(operator.weight_bytes for operator in graph.operators)
    assert sum(operator.weight_bytes for operator in coarse.operators) == once + 32 * repeated
    moved = (total_words(coarse, options) + repeated) * 32
    assert moved <= most_kib * 1024 < 0.55 * greedy_kib * 1024


def test_the_same_cut_every_time():
    options = PlanOptions(scratchpad_bytes=12_000)
    graph = unet(side=32, base=8, levels=1)
    assert tile(graph, options) == tile(graph, options) != graph


def test_nothing_to_cut():
    tensors = (
        Tensor(name="x", size_bytes=4096, kind=TensorKind.INPUT),
        Tensor(name="y", size_bytes=4096, kind=TensorKind.OUTPUT),
    )
    operators = (Operator(name="f", kind="k", inputs=("x",), outputs=("y",)),)
    graph = Graph(name="g", tensors=tensors, operators=operators)
    assert tile(graph, PlanOptions(scratchpad_bytes=1024)) is None
    # One row of each of two tensors needs 2 x 256 bytes, and a kernel three rows.
    assert tile(chain(2, side=64), PlanOptions(scratchpad_bytes=512, streaming=When.NEVER)) is None
    assert tile(chain(2, side=64), PlanOptions(scratchpad_bytes=2048, streaming=When.NEVER)) is not None
