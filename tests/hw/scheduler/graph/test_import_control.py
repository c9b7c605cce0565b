"""Branches, loops and functions of ONNX models: inlined if their conditions are known, else refused."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.hw.scheduler.graph.onnx_models import IMAGE, model, node, weights

INT, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL


def body(nodes, outputs, inputs=(), constants=None):
    """A graph of some nodes; inputs and outputs are names of floats, or pairs of name and type."""

    def value(given):
        name, kind = given if isinstance(given, tuple) else (given, FLOAT)
        return helper.make_tensor_value_info(name, kind, [] if kind != FLOAT else None)

    parameters = [
        onnx.numpy_helper.from_array(np.asarray(each), name) for name, each in (constants or {}).items()
    ]
    return helper.make_graph(nodes, "body", list(map(value, inputs)), list(map(value, outputs)), parameters)


def with_functions(content, *functions):
    made = onnx.load_model_from_string(content)
    made.functions.extend(functions)
    made.opset_import.append(helper.make_opsetid("here", 1))
    return made.SerializeToString()


def function(name, inputs, outputs, nodes, *, attributes=(), defaults=()):
    opset = [helper.make_opsetid("", 20), helper.make_opsetid("here", 1)]
    return helper.make_function("here", name, inputs, outputs, nodes, opset, attributes, defaults)


def operators(content, **options):
    return [(each.kind, each.macs, each.weight_bytes) for each in import_onnx(content, **options).operators]


def refused(content, **options):
    with pytest.raises(InputError) as caught:
        import_onnx(content, **options)
    return str(caught.value)


CONVOLVED = body([node("Conv", "x", "w", outputs=["c"], pads=[1] * 4)], ["c"])
KEPT = body([node("Identity", "x", outputs=["k"])], ["k"])


@pytest.mark.parametrize(("flag", "found"), [(True, [("conv", 3 * 64 * 27, 81)]), (False, [])])
def test_a_branch_reads_what_lies_around_it(flag, found):
    nodes = [
        node("If", "flag", outputs=["b"], then_branch=CONVOLVED, else_branch=KEPT),
        node("Add", "b", "x"),
    ]
    content = model(nodes, IMAGE, {"w": weights(3, 3, 3, 3), "flag": np.array(flag)})
    assert operators(content) == [*found, ("add", 0, 0)]
    assert import_onnx(content).operators[-1].inputs == (("b", "x") if flag else ("x",))


def test_a_condition_follows_from_the_shapes():
    """Squeeze of PyTorch: left out where the last extent is not 1."""
    squeezed = body([node("Squeeze", "p", "last", outputs=["s"])], ["s"], constants={"last": np.array([3])})
    whole = body([node("Identity", "p", outputs=["i"])], ["i"])
    nodes = [
        node("GlobalAveragePool", "x", outputs=["p"]),
        node("Shape", "p", outputs=["shape"]),
        node("Gather", "shape", "three", outputs=["extent"], axis=0),
        node("Equal", "extent", "one", outputs=["flag"]),
        node("If", "flag", outputs=["b"], then_branch=squeezed, else_branch=whole),
        node("Softmax", "b", axis=1),
    ]
    content = model(nodes, IMAGE, {"three": np.array(3), "one": np.array(1)})
    graph = import_onnx(content)
    assert [each.kind for each in graph.operators] == ["global_average_pool", "softmax"]
    assert graph.tensor["y"].shape == (1, 3, 1)


def test_what_decides_while_the_network_runs_is_named():
    nodes = [
        node("ReduceMax", "x", outputs=["m"], keepdims=0),
        node("Greater", "m", "zero", outputs=["flag"]),
    ]
    nodes.append(node("If", "flag", name="gate", then_branch=CONVOLVED, else_branch=KEPT))
    content = model(nodes, IMAGE, {"w": weights(3, 3, 3, 3), "zero": np.float32(0)})
    assert "If (node gate): its condition is known only when the network runs" in refused(content)


LOOPED = body(
    [
        node("Conv", "v", "w", outputs=["c"], pads=[1] * 4),
        node("ReduceMean", "c", outputs=["m"], keepdims=0),
        node("Identity", "go", outputs=["on"]),
    ],
    [("on", BOOL), "c", "m"],
    [("i", INT), ("go", BOOL), "v"],
)


@pytest.mark.parametrize("opset", [11, 20])
def test_a_loop_is_unrolled(opset):
    nodes = [
        node("Loop", "count", "", "x", outputs=["l", "means"], name="loop", body=LOOPED),
        node("Relu", "l"),
    ]
    content = model(
        nodes, IMAGE, {"w": weights(3, 3, 3, 3), "count": np.array(3)}, outputs=("y", "means"), opset=opset
    )
    one = ("conv", 3 * 64 * 27, 81)
    found = operators(content)
    assert [each for each in found if each[0] == "conv"] == [one] * 3
    assert [each[0] for each in found].count("reduce_mean") == 3
    assert import_onnx(content).tensor["means"].shape == (3,)


def test_a_loop_ends_where_its_condition_says():
    inner = body([node("Relu", "v", outputs=["a"])], ["a"])
    other = body([node("Tanh", "v", outputs=["b"])], ["b"])
    looped = body(
        [
            node("Equal", "i", "zero", outputs=["first"]),
            node("If", "first", outputs=["o"], then_branch=inner, else_branch=other),
            node("Less", "i", "limit", outputs=["on"]),
        ],
        [("on", BOOL), "o"],
        [("i", INT), ("go", BOOL), "v"],
        {"zero": np.array(0), "limit": np.array(2)},
    )
    content = model([node("Loop", "", "yes", "x", name="loop", body=looped)], IMAGE, {"yes": np.array(True)})
    assert [each[0] for each in operators(content)] == ["relu", "tanh", "tanh"]


def test_loops_that_cannot_be_unrolled_are_named():
    looped = body(
        [
            node("Relu", "v", outputs=["o"]),
            node("ReduceMax", "o", outputs=["m"], keepdims=0),
            node("Less", "m", "one", outputs=["on"]),
        ],
        [("on", BOOL), "o"],
        [("i", INT), ("go", BOOL), "v"],
        {"one": np.float32(1)},
    )
    content = model([node("Loop", "count", "", "x", name="loop", body=looped)], IMAGE, {"count": np.array(2)})
    assert "Loop (node loop): its condition is known only when the network runs" in refused(content)
    endless = body(
        [node("Relu", "v", outputs=["o"]), node("Identity", "go", outputs=["on"])],
        [("on", BOOL), "o"],
        [("i", INT), ("go", BOOL), "v"],
    )
    content = model(
        [node("Loop", "count", "", "x", name="loop", body=endless)], IMAGE, {"count": np.array(2**62)}
    )
    assert "Loop (node loop): it has more than 10000 operators when it is unrolled" in refused(content)
    counted = model(
        [node("ReduceMax", "x", outputs=["m"], keepdims=0), node("Cast", "m", outputs=["n"], to=INT),
         node("Loop", "n", "", "x", name="loop", body=endless)],
        IMAGE,
    )  # fmt: skip
    assert "Loop (node loop): its number of iterations is known only when the network runs" in refused(
        counted
    )


def test_a_scan_is_named_even_over_constants():
    scanned = body([node("Add", "s", "x", outputs=["o"])], ["o"], ["s"])
    content = model(
        [node("Scan", "c", name="scan", num_scan_inputs=1, body=scanned)], IMAGE, {"c": weights(2, 8)}
    )
    assert "Scan (node scan)" in refused(content)


def test_an_operator_of_the_branch_that_is_not_taken_does_not_matter():
    strange = body([node("NonZero", "x", outputs=["n"]), node("Cast", "n", outputs=["c"], to=FLOAT)], ["c"])
    taken = model([node("If", "f", then_branch=strange, else_branch=CONVOLVED)], IMAGE,
                  {"f": np.array(False), "w": weights(3, 3, 3, 3)})  # fmt: skip
    assert [each[0] for each in operators(taken)] == ["conv"]
    named = model([node("If", "f", then_branch=strange, else_branch=KEPT)], IMAGE, {"f": np.array(True)})
    assert "NonZero (node If.1/n)" in refused(named)


def test_branches_in_functions_with_attributes_of_the_call():
    condition = helper.make_node("Constant", [], ["f"])
    condition.attribute.add(name="value_int", ref_attr_name="deep", type=onnx.AttributeProto.INT)
    softmax = helper.make_node("Softmax", ["a"], ["s"])
    softmax.attribute.add(name="axis", ref_attr_name="along", type=onnx.AttributeProto.INT)
    choice = node("If", "b", outputs=["o"], then_branch=body([softmax], ["s"]),
                  else_branch=body([node("Relu", "a", outputs=["r"])], ["r"]))  # fmt: skip
    gate = function(
        "Gate", ["a"], ["o"], [condition, node("Cast", "f", outputs=["b"], to=BOOL), choice],
        attributes=["along"], defaults=[helper.make_attribute("deep", 1)],
    )  # fmt: skip
    twice = function("Twice", ["a"], ["o"], [
        node("Gate", "a", outputs=["m"], domain="here", along=3),
        node("Gate", "m", outputs=["o"], domain="here", along=1, deep=0),
    ])  # fmt: skip
    content = with_functions(model([node("Twice", "x", domain="here")], IMAGE), gate, twice)
    graph = import_onnx(content)
    assert [each.kind for each in graph.operators] == ["softmax", "relu"]
    assert [len(each.accesses) for each in graph.operators] == [1, 1]
    assert graph.operators[-1].outputs == ("y",)


def test_a_function_has_a_version_of_the_operators_of_its_own():
    """Softmax without an axis runs along the last dimension since version 13, over all of a row before."""
    old = helper.make_function("here", "Old", ["a"], ["o"], [node("Softmax", "a", outputs=["o"])],
                               [helper.make_opsetid("", 11)])  # fmt: skip
    nodes = [node("Old", "x", outputs=["m"], domain="here"), node("Softmax", "m")]
    first, second = import_onnx(with_functions(model(nodes, {"x": (2, 3, 4)}), old)).operators
    assert (first.accesses, list(second.accesses)) == ({}, ["m"])


def test_a_function_that_calls_itself_is_refused():
    one = function("One", ["a"], ["o"], [node("Two", "a", outputs=["o"], domain="here")])
    two = function("Two", ["a"], ["o"], [node("One", "a", outputs=["o"], domain="here")])
    text = refused(with_functions(model([node("One", "x", domain="here")], IMAGE), one, two))
    circle = "'here.One -> here.Two -> here.One'"
    assert text == f"model: functions of the model must be none that calls itself, not {circle}"


def test_functions_leave_operands_and_results_out():
    several = function(
        "Several", ["a", "b"], ["o", "p"],
        [node("Clip", "a", "", "b", outputs=["o"]), node("Tanh", "a", outputs=["p"])],
    )  # fmt: skip
    nodes = [node("Several", "x", outputs=["m"], domain="here"), node("Several", "m", "t", outputs=["", "y"],
             domain="here")]  # fmt: skip
    content = with_functions(model(nodes, IMAGE, {"t": np.float32(1)}), several)
    assert [each[0] for each in operators(content)] == ["clip", "tanh"]


@pytest.mark.parametrize("count", [(1, 0), (0, 1)])
def test_bodies_of_other_outputs_are_refused(count):
    outputs, more = count
    names = ["k", "k2"][: 1 + more] if not outputs else ["k"]
    nodes = [node("Identity", "x", outputs=["k"]), node("Relu", "x", outputs=["k2"])]
    results = ["y", "z"] if outputs else ["y"]
    made = node("If", "f", outputs=results, then_branch=body(nodes, names), else_branch=KEPT)
    text = refused(model([made], IMAGE, {"f": np.array(True)}))
    assert "outputs of the then_branch of If must be" in text
