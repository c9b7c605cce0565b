"""Merged elementwise operators: fewer steps and tensors, otherwise the same graph."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.scheduler.graph.fuse import fuse_elementwise
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.hw.scheduler.graph.onnx_models import model, node, weights

IMAGE = {"x": (1, 4, 8, 8)}


def check_fused(graph):
    """Compare a graph with what it becomes: every operator stands for some of the old ones, and what goes
    into them together and comes out of them together is what the new one reads and writes.
    """
    fused = fuse_elementwise(graph)
    old = {operator.name: operator for operator in graph.operators}
    parts = {operator.name: {operator.name, *operator.fused} for operator in fused.operators}
    assert Counter(name for names in parts.values() for name in names) == Counter(old.keys())
    for operator in fused.operators:
        inside = [old[name] for name in parts[operator.name]]
        made = {name for member in inside for name in member.outputs}
        read = {name for member in inside for name in member.inputs}
        seen = {
            name
            for name in made
            if graph.tensor[name].kind is TensorKind.OUTPUT
            or any(reader.name not in parts[operator.name] for reader in graph.consumers[name])
        }
        assert set(operator.inputs) == read - made
        assert set(operator.outputs) == seen
        assert operator.macs == sum(member.macs for member in inside)
        assert operator.weight_bytes == sum(member.weight_bytes for member in inside)
        assert operator.kind == old[operator.name].kind
    assert set(fused.tensors) <= set(graph.tensors)
    ends = {tensor for tensor in graph.tensors if tensor.kind is not TensorKind.ACTIVATION}
    assert ends <= set(fused.tensors)
    assert fuse_elementwise(fused) == fused, "one pass does all there is to do"
    return fused


def kinds(fused):
    return [(operator.kind, len(operator.fused)) for operator in fused.operators]


def test_convolution_with_normalization_and_rectifier():
    nodes = [
        node("Conv", "x", "w", outputs=["a"], pads=[1, 1, 1, 1], name="conv"),
        node("BatchNormalization", "a", "s", "s", "s", "s", outputs=["b"], name="bn"),
        node("Relu", "b", name="relu"),
    ]
    graph = import_onnx(model(nodes, IMAGE, {"w": weights(4, 4, 3, 3), "s": weights(4)}))
    fused = check_fused(graph)
    (operator,) = fused.operators
    assert (operator.kind, operator.fused) == ("conv", ("1:bn", "2:relu"))
    assert (operator.inputs, operator.outputs) == (("x",), ("y",))
    assert operator.accesses == {"x": Access(axis=2, output_axis=2, kernel=3, pad=1)}
    assert operator.weight_bytes == 4 * 4 * 9 + 4, "a parameter named four times is read once"


def test_rectifier_with_slopes():
    nodes = [node("Conv", "x", "w", outputs=["a"]), node("PRelu", "a", "s")]
    graph = import_onnx(model(nodes, IMAGE, {"w": weights(4, 4, 1, 1), "s": weights(4, 1, 1)}))
    assert kinds(check_fused(graph)) == [("conv", 1)]


def test_product_with_bias_and_gelu():
    nodes = [
        node("MatMul", "x", "w", outputs=["a"]),
        node("Add", "a", "b", outputs=["c"]),
        node("Gelu", "c"),
    ]
    graph = import_onnx(model(nodes, {"x": (6, 4)}, {"w": weights(4, 5), "b": weights(5)}))
    assert kinds(check_fused(graph)) == [("matmul", 2)]


def test_a_residual_sum_stays_and_takes_its_rectifier():
    nodes = [
        node("Conv", "x", "w", outputs=["a"]),
        node("Relu", "a", outputs=["b"]),
        node("Conv", "b", "w", outputs=["c"]),
        node("Add", "c", "b", outputs=["d"]),
        node("Relu", "d"),
    ]
    graph = import_onnx(model(nodes, IMAGE, {"w": weights(4, 4, 1, 1)}))
    fused = check_fused(graph)
    assert kinds(fused) == [("conv", 1), ("conv", 0), ("add", 1)]
    assert fused.operators[2].inputs == ("c", "b")


def test_an_activation_of_a_shared_tensor_goes_to_its_only_reader():
    nodes = [
        node("Conv", "x", "w", outputs=["a"]),
        node("Relu", "a", outputs=["b"]),
        node("Conv", "b", "w", outputs=["c"], strides=[2, 2], kernel_shape=[1, 1]),
        node("Conv", "a", "w", outputs=["d"]),
        node("Concat", "c", "c", outputs=["y"], axis=1),
        node("Concat", "d", "d", outputs=["z"], axis=1),
    ]
    graph = import_onnx(model(nodes, IMAGE, {"w": weights(4, 4, 1, 1)}, outputs=("y", "z")))
    fused = check_fused(graph)
    reader = next(operator for operator in fused.operators if operator.fused)
    assert (reader.inputs, reader.outputs) == (("a",), ("c",))
    assert reader.accesses["a"].stride == 2


def test_what_two_operators_read_is_made_once():
    nodes = [
        node("Relu", "x", outputs=["a"]),
        node("Conv", "a", "w", outputs=["y"]),
        node("Conv", "a", "w", outputs=["z"]),
    ]
    graph = import_onnx(model(nodes, IMAGE, {"w": weights(4, 4, 1, 1)}, outputs=("y", "z")))
    assert kinds(check_fused(graph)) == [("relu", 0), ("conv", 0), ("conv", 0)]


def test_an_output_keeps_its_operator():
    nodes = [node("Conv", "x", "w", outputs=["y"]), node("Relu", "y", outputs=["z"])]
    graph = import_onnx(model(nodes, IMAGE, {"w": weights(4, 4, 1, 1)}, outputs=("y", "z")))
    assert kinds(check_fused(graph)) == [("conv", 0), ("relu", 0)]


def test_an_operand_spread_over_a_larger_result_is_no_map():
    nodes = [node("Add", "x", "b", outputs=["a"]), node("Softmax", "a")]
    graph = import_onnx(model(nodes, {"x": (1, 4)}, {"b": weights(6, 4)}))
    assert kinds(check_fused(graph)) == [("add", 0), ("softmax", 0)]


def test_an_operator_that_reads_both_sides_of_an_activation():
    nodes = [
        node("Conv", "x", "w", outputs=["a"]),
        node("Sigmoid", "a", outputs=["b"]),
        node("Mul", "a", "b"),
    ]
    graph = import_onnx(model(nodes, IMAGE, {"w": weights(4, 4, 1, 1)}))
    assert kinds(check_fused(graph)) == [("conv", 0), ("sigmoid", 0), ("mul", 0)]


def random_network(seed):
    """Operators of one to three operands and one or two results; half of them could be maps."""
    rng = random.Random(seed)
    shapes = [(4, 16), (2, 16), ()]
    tensors = [Tensor(name="x", size_bytes=64, shape=(4, 16), kind=TensorKind.INPUT)]
    operators = []
    for number in range(rng.randint(1, 14)):
        read = rng.sample(tensors, min(len(tensors), rng.choice((1, 1, 1, 2, 3))))
        made = []
        for part in range(rng.choice((1, 1, 1, 2))):
            shape = rng.choice((read[0].shape, read[0].shape, rng.choice(shapes)))
            bits = rng.choice((8, 8, 16)) if shape else 8
            size = shape[0] * 16 * bits // 8 if shape else rng.choice((64, 32))
            made.append(Tensor(name=f"t{number}.{part}", size_bytes=size, shape=shape, element_bits=bits))
        operators.append(
            Operator(
                name=f"o{number}", kind=rng.choice(("conv", "relu", "add", "cast", "softmax")),
                inputs=tuple(tensor.name for tensor in read), outputs=tuple(tensor.name for tensor in made),
                macs=rng.randint(0, 9), weight_bytes=rng.randint(0, 9),
            )
        )  # fmt: skip
        tensors += made
    used = {name for operator in operators for name in operator.inputs}
    kept = []
    for tensor in tensors:
        if tensor.kind is TensorKind.ACTIVATION and (tensor.name not in used or rng.random() < 0.1):
            kept.append(
                Tensor(
                    name=tensor.name, size_bytes=tensor.size_bytes, shape=tensor.shape,
                    element_bits=tensor.element_bits, kind=TensorKind.OUTPUT,
                )
            )  # fmt: skip
        else:
            kept.append(tensor)
    return Graph(name="random", tensors=tuple(kept), operators=tuple(operators))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_any_network_keeps_its_meaning(seed):
    check_fused(random_network(seed))


def test_random_networks_have_something_to_merge():
    counts = Counter()
    for seed in range(100):
        fused = fuse_elementwise(random_network(seed))
        counts.update(len(operator.fused) for operator in fused.operators)
    assert counts[1] > 25
    assert counts[2] >= 3


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [("relu", 64, 64, 1), ("relu", 64, 32, 2), ("conv", 64, 64, 2)],
)
def test_tensors_that_are_known_by_their_size_only(kind, before, after, expected):
    graph = Graph(
        name="sizes",
        tensors=(
            Tensor(name="x", size_bytes=9, kind=TensorKind.INPUT),
            Tensor(name="a", size_bytes=before),
            Tensor(name="y", size_bytes=after, kind=TensorKind.OUTPUT),
        ),
        operators=(
            Operator(name="f", kind="conv", inputs=("x",), outputs=("a",)),
            Operator(name="g", kind=kind, inputs=("a",), outputs=("y",)),
        ),
    )
    assert len(check_fused(graph).operators) == expected
