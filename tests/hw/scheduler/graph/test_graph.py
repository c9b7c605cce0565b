import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.errors import InputError
from hw.scheduler.graph.graph import MAX_TENSOR_BYTES, Access, Graph, Operator, Tensor, TensorKind


def tensor(name, kind=TensorKind.ACTIVATION, size=64):
    return Tensor(name=name, size_bytes=size, kind=kind)


def operator(name, inputs, outputs, **more):
    return Operator(name=name, kind="add", inputs=tuple(inputs), outputs=tuple(outputs), **more)


IN, OUT = TensorKind.INPUT, TensorKind.OUTPUT


def chain(**more):
    tensors = (tensor("x", IN), tensor("y"), tensor("z", OUT))
    return {
        "name": "chain",
        "tensors": tensors,
        "operators": (operator("f", "x", "y"), operator("g", "y", "z")),
        **more,
    }


def test_what_a_graph_knows_of_its_tensors():
    graph = Graph(**chain())
    assert graph.producer["y"].name == "f"
    assert "x" not in graph.producer
    assert [reader.name for reader in graph.consumers["y"]] == ["g"]
    assert graph.consumers["z"] == ()


def test_operators_are_put_in_order_and_stay_in_it_where_they_can():
    tensors = (tensor("x", IN), *(tensor(name, OUT) for name in "abcd"))
    operators = (
        operator("d", "b", "d"),
        operator("a", "x", "a"),
        operator("c", "x", "c"),
        operator("b", "a", "b"),
    )
    graph = Graph(name="g", tensors=tensors, operators=operators)
    assert [op.name for op in graph.operators] == ["a", "b", "d", "c"]
    again = Graph(name="g", tensors=tensors, operators=graph.operators)
    assert again.operators == graph.operators


def test_a_long_chain_in_reverse_is_no_deep_recursion():
    names = [f"t{n}" for n in range(5000)]
    tensors = (tensor("t0", IN), *(tensor(name) for name in names[1:-1]), tensor(names[-1], OUT))
    operators = [operator(f"f{n}", [names[n]], [names[n + 1]]) for n in range(len(names) - 1)]
    graph = Graph(name="deep", tensors=tensors, operators=tuple(reversed(operators)))
    assert [op.name for op in graph.operators] == [op.name for op in operators]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operators": ()}, "operators of graph 'chain' must be at least one"),
        (
            {"operators": (operator("f", "z", "y"), operator("g", "y", "z"))},
            "graph must be without a cycle, not 'f -> g -> f'",
        ),
        (
            {"operators": (operator("f", "x", "y"), operator("f", "y", "z"))},
            "name of an operator must be used once",
        ),
        ({"operators": (operator("f", "x", "y"), operator("g", "x", "y"))}, "'y' must be written by one"),
        (
            {"operators": (operator("f", "x", "y"), operator("g", "q", "z"))},
            "tensor of operator 'g' must be one the graph declares, not 'q'",
        ),
        ({"operators": (operator("f", "x", "y"),)}, "tensor 'y' must be read by at least one"),
        ({"operators": (operator("g", "x", "z"),)}, "tensor 'y' must be written by one"),
        (
            {"tensors": (tensor("x", IN), tensor("y", IN), tensor("z", OUT))},
            "kind of tensor 'y' must be activation or output",
        ),
        (
            {"tensors": (tensor("x", IN), tensor("x", IN), tensor("y"), tensor("z", OUT))},
            "name of a tensor must be used once, not 'x'",
        ),
        ({"tensors": (*chain()["tensors"], tensor("w", IN))}, "tensor 'w' must be read by at least one"),
    ],
)
def test_what_is_no_graph(change, message):
    if "f -> g -> f" in message:
        change["tensors"] = (tensor("y"), tensor("z"))
    with pytest.raises(InputError) as caught:
        Graph(**chain(**change))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "name of a tensor must be at least one character"),
        ({"size_bytes": 0}, f"size_bytes of tensor 't' must be from 1 to {MAX_TENSOR_BYTES}, not 0"),
        ({"size_bytes": -4}, "not -4"),
        ({"size_bytes": 2**32}, "not 4294967296"),
        ({"shape": (4, 0)}, "shape of tensor 't' must be positive in every dimension, not (4, 0)"),
        ({"shape": (4, 4)}, "size_bytes of tensor 't' must be 16, what shape and element_bits say, not 64"),
        ({"element_bits": 0}, "element_bits of tensor 't' must be from 1 to 64, not 0"),
    ],
)
def test_what_is_no_tensor(fields, message):
    with pytest.raises(InputError) as caught:
        Tensor(**{"name": "t", "size_bytes": 64, **fields})
    assert message in str(caught.value)


def test_elements_of_any_size_fill_bytes():
    assert Tensor(name="t", size_bytes=5, shape=(3, 3), element_bits=4).size_bytes == 5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"outputs": ()}, "outputs of operator 'f' must be at least one tensor"),
        ({"inputs": ("x", "x")}, "tensors of operator 'f' must be named once each, not 'x'"),
        ({"inputs": ("y",)}, "tensors of operator 'f' must be named once each, not 'y'"),
        ({"macs": -1}, "macs of operator 'f' must be at least 0, not -1"),
        ({"accesses": {"q": Access()}}, "accesses of operator 'f' must be for one of its inputs, not 'q'"),
    ],
)
def test_what_is_no_operator(fields, message):
    with pytest.raises(InputError) as caught:
        Operator(**{"name": "f", "kind": "add", "inputs": ("x",), "outputs": ("y",), **fields})
    assert message in str(caught.value)


def test_an_access_with_a_stride_of_zero():
    with pytest.raises(InputError, match="stride of an access must be at least 1, not 0"):
        Access(stride=0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"axis": 2}, "axis of the access from 'y' to 'x' must be below 2, the dimensions of 'x', not 2"),
        ({"output_axis": 2}, "output_axis of the access from 'y' to 'x' must be below 2"),
        ({"kernel": 21, "pad": 1}, "kernel of the access from 'y' to 'x' must be at most 20, four times the"),
    ],
)
def test_an_access_out_of_its_tensors(fields, message):
    with pytest.raises(InputError) as caught:
        one_operator(Access(**fields))
    assert message in str(caught.value)


def test_an_access_as_far_as_its_tensor_reaches():
    assert one_operator(Access(axis=1, output_axis=1, kernel=20, pad=1)).operators


def one_operator(access):
    tensors = [
        Tensor(name=name, size_bytes=16, shape=(4, 4), kind=kind)
        for name, kind in (("x", TensorKind.INPUT), ("y", TensorKind.OUTPUT))
    ]
    operator = Operator(name="f", kind="conv", inputs=("x",), outputs=("y",), accesses={"x": access})
    return Graph(name="g", tensors=tuple(tensors), operators=(operator,))


@given(
    kernel=st.integers(1, 5), stride=st.integers(1, 3), pad=st.integers(0, 3), up=st.integers(1, 3),
    extent=st.integers(1, 20), first=st.integers(0, 10), count=st.integers(1, 10),
)  # fmt: skip
def test_rows_of_a_band_are_those_of_its_rows(kernel, stride, pad, up, extent, first, count):
    access = Access(kernel=kernel, stride=stride, pad=pad, up=up)
    windows = [
        {row for row in range(begin, begin + kernel) if 0 <= row < extent}
        for begin in (out * stride // up - pad for out in range(first, first + count))
    ]
    needed = set().union(*windows)
    begin, end = access.rows(first, first + count, extent)
    assert 0 <= begin < end <= extent
    assert needed <= set(range(begin, end))
    # A window that lies wholly beside the tensor needs no row of it.
    if all(windows):
        assert (begin, end) == (min(needed), max(needed) + 1)
