"""Damaged ONNX models: each is refused in words, or is a graph; never anything else."""

import math
import random
from contextlib import suppress

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.importers.onnx_model import import_onnx
from hw.scheduler.graph.importers.onnx_operators import OPERATORS, VIEWS
from hw.scheduler.graph.importers.onnx_products import PRODUCTS
from hw.scheduler.graph.importers.onnx_standins import STAND_INS
from tests.hw.scheduler.graph.onnx_models import IMAGE, model, node, small, weights


def whole(*values):
    return np.array(values, np.int64)


def image():
    """Windows of every kind, slices and concatenations."""
    nodes = [
        node("Conv", "x", "w", outputs=["a"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("BatchNormalization", "a", "s", "s", "s", "s", outputs=["n"]),
        node("MaxPool", "n", outputs=["p"], kernel_shape=[2, 2], strides=[1, 1], pads=[1, 0, 0, 1]),
        node("ConvTranspose", "p", "wt", outputs=["t"], strides=[2, 2]),
        node("Resize", "t", "", "scales", outputs=["r"], mode="nearest"),
        node("Pad", "r", "pads", outputs=["q"]),
        node("Slice", "q", "from", "to", "axis", "step", outputs=["l"]),
        node("LRN", "l", outputs=["e"], size=3),
        node("SpaceToDepth", "e", outputs=["sd"], blocksize=2),
        node("DepthToSpace", "sd", outputs=["ds"], blocksize=2),
        node("Split", "ds", outputs=["u", "v"], axis=1, num_outputs=2),
        node("Concat", "u", "v", outputs=["c"], axis=2),
        node("ReduceMean", "c", "axes", outputs=["m"], keepdims=0),
        node("Gemm", "m", "g", transB=1),
    ]
    constants = {
        "w": weights(4, 3, 3, 3), "s": weights(4), "wt": weights(4, 4, 2, 2), "g": weights(5, 2),
        "scales": np.array([1, 1, 2, 2], np.float32), "pads": whole(0, 0, 1, 1, 0, 0, 1, 1),
        "from": whole(2), "to": whole(18), "axis": whole(2), "step": whole(1), "axes": whole(2, 3),
    }  # fmt: skip
    return model(nodes, IMAGE, constants)


def text():
    """Attention over a cache, with shapes computed on the way."""
    nodes = [
        node("Shape", "x", outputs=["shape"]),
        node("Gather", "shape", "zero", outputs=["batch"]),
        node("Concat", "batch", "rest", outputs=["target"], axis=0),
        node("LayerNormalization", "x", "g", "g", outputs=["n"], axis=-1),
        node("MatMul", "n", "w", outputs=["flat"]),
        node("Reshape", "flat", "target", outputs=["heads"]),
        node("Transpose", "heads", outputs=["q"], perm=[0, 2, 1, 3]),
        node("Concat", "past", "q", outputs=["k"], axis=2),
        node("Transpose", "k", outputs=["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", "q", "kt", outputs=["s"]),
        node("Softmax", "s", outputs=["p"], axis=-1),
        node("MatMul", "p", "k", outputs=["o"]),
        node("Flatten", "o", outputs=["f"], axis=2),
        node("Constant", outputs=["rows"], value=numpy_helper.from_array(whole(0, 1))),
        node("Gather", "f", "rows", axis=0),
    ]
    constants = {"zero": whole(0), "rest": whole(4, 2, 4), "g": weights(8), "w": weights(8, 8)}
    return model(nodes, {"x": (2, 4, 8), "past": (2, 2, 3, 4)}, constants)


def changed(content, change):
    made = onnx.load_model_from_string(content)
    change(made.graph)
    return made.SerializeToString()


def refused(content):
    with pytest.raises(InputError) as caught:
        import_onnx(content)
    return str(caught.value)


def numbers(graph, values):
    """Return the parameter ``m`` as a list of numbers instead of bytes."""
    graph.initializer[2].ClearField("raw_data")
    graph.initializer[2].float_data.extend(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.dims.__setitem__(1, 1), "must be 64, what shape (64, 1) says, of type float32, not"),
        (lambda m: m.dims.__setitem__(1, 0), "must be 0, what shape (64, 0) says, of type float32, not"),
        (lambda m: m.dims.__setitem__(0, 1 << 62), "what shape (4611686018427387904, 10) says"),
        (lambda m: m.dims.__setitem__(0, -64), "must be at least 0 in every dimension, not (-64, 10)"),
        (
            lambda m: m.dims.pop(),
            "must be 64, what shape (64,) says, of type float32, not 'cannot reshape",
        ),
        (lambda m: setattr(m, "data_type", TensorProto.DOUBLE), "must be 640, what shape (64, 10) says, of"),
        (lambda m: setattr(m, "data_type", TensorProto.INT4), "of type int4, not '2560 bytes'"),
        (
            lambda m: setattr(m, "data_type", 0),
            "type of parameter 'm' must be an element type of ONNX, not 0",
        ),
        (lambda m: setattr(m, "data_type", 99), "must be an element type of ONNX, not 99"),
        (lambda m: setattr(m, "raw_data", b"abc"), "stored values of parameter 'm' must be 640"),
        (lambda m: m.ClearField("raw_data"), "stored values of parameter 'm' must be 640"),
    ],
)
def test_damaged_parameters_are_named(change, message):
    text = refused(changed(small(), lambda graph: change(graph.initializer[2])))
    assert "of parameter 'm' must be" in text
    assert message in text


@pytest.mark.parametrize("count", [0, 1, 639, 641])
def test_lists_of_too_few_or_too_many_numbers(count):
    text = refused(changed(small(), lambda graph: numbers(graph, [1.0] * count)))
    assert "stored values of parameter 'm' must be 640" in text
    assert isinstance(import_onnx(changed(small(), lambda graph: numbers(graph, [1.0] * 640))), Graph)


def test_a_node_without_a_name_nor_a_result():
    content = changed(small(), lambda graph: graph.node.add(op_type="Unheard"))
    assert import_onnx(content) == import_onnx(small()), "nothing depends on it"


def test_nodes_without_results_among_nodes_out_of_order():
    nodes = [node("Relu", "y", outputs=["a"]), node("Relu", "a"), node("Shape", "x", outputs=[])]
    nodes.append(node("Constant", outputs=[], value_int=1))
    assert "the graph has a cycle, or is out of order" in refused(model(nodes, IMAGE))


def test_a_damaged_constant_is_named():
    damaged = numpy_helper.from_array(whole(1, 2), "steps")
    damaged.dims[0] = 3
    nodes = [node("Constant", outputs=["c"], value=damaged), node("Add", "x", "c")]
    assert "stored values of parameter 'steps' must be 3" in refused(model(nodes, {"x": (3,)}))


def test_packed_parameters_are_as_long_as_they_should_be():
    kinds = {TensorProto.INT4: 3, TensorProto.UINT4: 3, TensorProto.INT2: 2, TensorProto.FLOAT6E2M3: 4}
    for kind, size in kinds.items():
        packed = TensorProto(name="c", data_type=kind, dims=[5], raw_data=bytes(size))
        made = onnx.load_model_from_string(model([node("Add", "x", "w")], {"x": (5,)}, {"w": weights(5)}))
        made.graph.initializer.append(packed)
        assert isinstance(import_onnx(made.SerializeToString()), Graph)
        made.graph.initializer[-1].raw_data = bytes(size + 1)
        assert "stored values of parameter 'c'" in refused(made.SerializeToString())


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        # Each of these ends the process, or takes all memory, when a whole model is inferred at once.
        (
            [
                node("MaxPool", "x", outputs=["a"], kernel_shape=[77, 2], name="p"),
                node("Slice", "a", "one", "one", "one", "one"),
            ],
            "kernel of operator 'p' (MaxPool) must be at most 8, the padded rows of dimension 2, not 77",
        ),
        (
            [node("Split", "x", outputs=["y", "z"], axis=1, num_outputs=1, name="s")],
            "num_outputs of operator 's' (Split) must be 2, the outputs it has, not 1",
        ),
        (
            [node("Split", "x", outputs=["y", "z"], axis=1, num_outputs=1 << 62, name="s")],
            "num_outputs of operator 's' (Split) must be 2, the outputs it has, not 4611686018427387904",
        ),
        (
            [node("Relu", "y", outputs=["a"], name="f"), node("Relu", "a", name="g")],
            "operand of operator 'f' (Relu) must be made by an operator before it: the graph has a cycle",
        ),
        (
            [node("Relu", "nothing", name="f")],
            "operand of operator 'f' (Relu) must be a parameter, an input of the model, or made by an",
        ),
        (
            [node("Relu", "x", outputs=["a"]), node("Tanh", "x", outputs=["a"], name="t"), node("Relu", "a")],
            "result of operator 't' (Tanh) must be a name that nothing else has, not 'a'",
        ),
        (
            [node("Conv", "x", "one", name="c")],
            "element type of operand W of operator 'c' (Conv) must be one of double, float, float16, not",
        ),
        (
            [node("Conv", "x", name="c")],
            "number of operands of operator 'c' (Conv) must be from 2 to 3, not 1",
        ),
        (
            [node("Relu", "x", name="r", slope=3)],
            "attribute of operator 'r' (Relu) must be left out: the operator has none, not 'slope'",
        ),
    ],
)
def test_operators_that_do_not_fit_are_named(nodes, message):
    assert message in refused(model(nodes, IMAGE, {"one": whole(1)}))


def test_a_stated_shape_that_is_not_the_one_made_is_said():
    made = onnx.load_model_from_string(small())
    made.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [1, 4, 5, 4]))
    words = []
    assert import_onnx(made.SerializeToString(), say=words.append).tensor["a"].shape == (1, 4, 4, 4)
    said = "the model states shape [1, 4, 5, 4] of tensor 'a', which has [1, 4, 4, 4]"
    assert words == [f"model: {said}; shapes are computed from the inputs'"]
    made.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, ["n", 4, 4]))
    import_onnx(made.SerializeToString(), say=words.append)
    assert words[1:] == [f"model: {said}; so of 1 more; shapes are computed from the inputs'"]


def test_a_stated_shape_helps_where_none_is_inferred():
    made = onnx.load_model_from_string(
        model([node("Reshape", "x", "s", outputs=["a"]), node("Relu", "a")], IMAGE)
    )
    made.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, [2]))
    assert "shape of tensor" in refused(made.SerializeToString())
    made.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [12, 16]))
    assert import_onnx(made.SerializeToString()).tensor["y"].shape == (12, 16)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda shape: shape.dim[2].__setattr__("dim_value", -8), "dimension 2 of input 'x' must be given"),
        (lambda shape: shape.dim[2].__setattr__("dim_value", 0), "an operator that is more than a view"),
        (
            lambda shape: shape.dim[2].__setattr__("dim_value", 1 << 40),
            "size_bytes of tensor 'x' must be from",
        ),
    ],
)
def test_sizes_that_cannot_be(change, message):
    content = changed(
        model([node("Relu", "x")], IMAGE), lambda graph: change(graph.input[0].type.tensor_type.shape)
    )
    assert message in refused(content)


def test_an_input_without_a_shape():
    content = changed(small(), lambda graph: graph.input[0].type.tensor_type.ClearField("shape"))
    assert refused(content) == "shape of input 'x' must be given: --shape x=D0,D1, not 'open'"
    assert import_onnx(content, shapes={"x": IMAGE["x"]}) == import_onnx(small())


def test_element_types_that_are_none():
    content = changed(
        model([node("Relu", "x")], IMAGE),
        lambda graph: setattr(graph.input[0].type.tensor_type, "elem_type", 99),
    )
    assert refused(content) == "model: type of input 'x' must be an element type of ONNX, not 99"
    text = refused(model([node("Cast", "x", name="c", to=99)], IMAGE))
    legal = "must be an element type of ONNX, not 99"
    assert text == f"model: element type of the result of operator 'c' (Cast) {legal}"


def runtime():
    """Attention with its projections, a product in Einsum, and one with weights of few bits."""
    own = {"domain": "com.microsoft"}
    nodes = [
        node("Attention", "x", "w", "b", outputs=["a"], num_heads=2, **own),
        node("Einsum", "a", "m", outputs=["e"], equation="...ij,jk->...ik"),
        node("MatMulNBits", "e", "n", "s", K=16, N=2, bits=4, block_size=16, **own),
    ]
    constants = {
        "w": weights(4, 12), "b": weights(12), "m": weights(4, 16),
        "n": np.zeros((2, 1, 8), np.uint8), "s": weights(2),
    }  # fmt: skip
    return model(nodes, {"x": (1, 2, 4)}, constants, runtime=True)


@pytest.mark.parametrize("name", [b"small", b"com.microsoft", b"num_heads", b"Einsum", b"\x01w", b"batch"])
def test_a_name_that_is_no_text(name):
    """Of the graph, a set of operators, an attribute, an operator, a parameter, a dimension."""
    made = onnx.load_model_from_string(runtime())
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    content = made.SerializeToString()
    assert name in content
    text = refused(content.replace(name, name[:-1] + b"\xec"))
    assert text == "model must be an ONNX model, and this is damaged: a name is no text, not 'model'"


BASES = {"small": small, "image": image, "text": text, "runtime": runtime}


def survives(content):
    with suppress(InputError):
        assert isinstance(import_onnx(content), Graph)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda node: node.attribute[0].ClearField("type"), "num_heads {} must be a whole number, not None"),
        (
            lambda node: node.attribute.append(helper.make_attribute("qkv_hidden_sizes", 16)),
            "qkv_hidden_sizes {} must be whole numbers, not 16",
        ),
    ],
)
def test_attributes_of_another_type_are_named(change, message):
    text = refused(changed(runtime(), lambda graph: change(graph.node[0])))
    assert text == "model: " + message.format("of operator 'Attention' of 'a'")


@pytest.mark.parametrize(
    "equation", ["..ij,jk->...ik", "....ij,jk->...ik", "...i...,jk", "ij,jk->i1", "ij,jk->ik->"]
)
def test_an_equation_that_is_none_is_named(equation):
    """ONNX never returns from the first."""
    text = refused(
        model([node("Einsum", "x", "w", equation=equation, name="e")], IMAGE, {"w": weights(8, 8)})
    )
    legal = "terms of letters, each with '...' once at most"
    assert text == f"model: equation of operator 'e' (Einsum) must be {legal}, not {equation!r}"


@pytest.mark.parametrize("name", BASES)
def test_any_byte_may_be_another(name):
    content = BASES[name]()
    assert isinstance(import_onnx(content), Graph)
    rng = random.Random(name)
    for _ in range(300):
        place = rng.randrange(len(content))
        survives(content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :])


@pytest.mark.soak
@pytest.mark.parametrize("name", BASES)
def test_every_byte_may_be_any_other(name):
    content = BASES[name]()
    for place in range(len(content)):
        survives(content[:place])
        survives(content[:place] + content[place + 1 :])
        for value in range(0, 256, 15):
            survives(content[:place] + bytes([value]) + content[place + 1 :])


SUPPORTED = sorted({*OPERATORS, *PRODUCTS, *STAND_INS, *VIEWS})

#: Whole numbers a damaged field may hold.
WHOLE = (0, -1, 1, 2, 3, 5, 100, -100, 2**31, 2**62, -(2**63))


def damage(rng, graph):
    """Change one field of a model to another value of its type, or leave one out."""
    one = rng.choice(graph.node)
    names = [name for other in graph.node for name in (*other.input, *other.output)] + ["nothing"]
    way = rng.randrange(9)
    if way == 0 and one.attribute:
        del one.attribute[rng.randrange(len(one.attribute))]
    elif way == 1 and one.attribute:
        attribute = rng.choice(one.attribute)
        if attribute.ints:
            attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(WHOLE)
        else:
            attribute.i = rng.choice(WHOLE)
    elif way == 2 and one.attribute:
        del rng.choice(one.attribute).ints[1:]
    elif way == 3 and one.input:
        one.input[rng.randrange(len(one.input))] = rng.choice(names)
    elif way == 4:
        del (one.input if rng.random() < 0.5 else one.output)[-1:]
    elif way == 5:
        one.domain, _, one.op_type = rng.choice(SUPPORTED).rpartition(".")
    elif way == 6:
        parameter = rng.choice(graph.initializer)
        if parameter.data_type == TensorProto.INT64:
            values = [rng.choice(WHOLE) for _ in range(math.prod(parameter.dims))]
            parameter.raw_data = whole(*values).tobytes()
    elif way == 7:
        shape = rng.choice(graph.input).type.tensor_type.shape
        rng.choice(shape.dim).dim_value = rng.choice((1, 2, 5, 100, 1 << 20))
    else:
        graph.node.remove(one)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("count", [150, pytest.param(6000, marks=pytest.mark.soak)])
def test_every_field_may_be_another(name, count):
    rng = random.Random(name)
    for _ in range(count):
        made = onnx.load_model_from_string(BASES[name]())
        for _ in range(rng.randint(1, 3)):
            if made.graph.node:
                damage(rng, made.graph)
        survives(made.SerializeToString())
