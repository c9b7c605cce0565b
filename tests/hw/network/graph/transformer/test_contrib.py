"""Operators that onnxruntime's optimizer writes become blocks with onnxruntime's own results."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from hw.errors import InputError
from hw.network.graph.transformer.blocks import Dense, First, Function, Lookup, Mean, Norm, Rows, Sum
from hw.network.graph.transformer.functions import operator_of
from hw.network.graph.transformer.quantize import measure
from hw.network.graph.transformer.reader import read_blocks
from hw.network.graph.transformer.rule import Rule
from sim.golden.network import execute
from tests.support.networks.sentences import float_results, model, sentences

_TOKENS, _CHANNELS, _INNER = 24, 64, 128
_MICROSOFT = "com.microsoft"


class _Graph:
    """A model with fused operators and drawn parameters."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.parameters, self.inputs = [], [], ["input_ids"]

    def keep(self, array):
        name = f"p{len(self.parameters)}"
        self.parameters.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def drawn(self, *shape, size=1.0, middle=0.0):
        return self.keep((middle + size * self.rng.normal(size=shape)).astype(np.float32))

    def add(self, op, *inputs, domain=_MICROSOFT, results=(), **attributes):
        name = f"{op}_{len(self.nodes)}"
        made = helper.make_node(op, inputs, [name, *results], name=name, domain=domain, **attributes)
        self.nodes.append(made)
        return name

    def product(self, x, rows, columns):
        return self.add("MatMul", x, self.drawn(rows, columns, size=rows**-0.5), domain="")

    def norm(self):
        return self.drawn(_CHANNELS, size=0.5, middle=1.0), self.drawn(_CHANNELS, size=0.1)

    def file(self, output):
        self.add("Identity", output, domain="")
        self.nodes[-1].output[0] = "tokens"
        graph = helper.make_graph(
            self.nodes,
            "fused",
            [helper.make_tensor_value_info(each, TensorProto.INT32, [1, "length"]) for each in self.inputs],
            [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, None)],
            self.parameters,
        )
        sets = [helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=9).SerializeToString()


def embedded(net, *, types=True, numbers=False):
    """Return rows of three tables, normalized; ``numbers``: positions are an input."""
    more = {}
    if types:
        net.inputs.append("segment_ids")
    if numbers:
        net.inputs.append("position_ids")
    inputs = [
        "input_ids",
        "segment_ids" if types else "",
        net.drawn(50, _CHANNELS),
        net.drawn(40, _CHANNELS),
        net.drawn(2, _CHANNELS) if types else "",
        *net.norm(),
        *(["", "position_ids"] if numbers else []),
    ]
    return net.add("EmbedLayerNormalization", *inputs, results=["mask_index"], epsilon=1e-6, **more)


def inner(net, x, form):
    """Return a product and its function."""
    product = net.product(x, _CHANNELS, _INNER)
    if form == "BiasGelu":
        return net.add("BiasGelu", product, net.drawn(_INNER, size=0.1))
    if form == "FastGelu":
        return net.add("FastGelu", product, net.drawn(_INNER, size=0.1))
    return net.add("FastGelu", product)


def fused(form="BiasGelu", *, swapped=False, seed=0, bias=True, **options):
    """Return a model of one layer's second half in fused operators."""
    net = _Graph(seed)
    x = embedded(net, **options)
    weights = net.drawn(_INNER, _CHANNELS, size=_INNER**-0.5)
    y = net.add("FusedMatMul", inner(net, x, form), weights, alpha=0.5)
    operands = (x, y) if swapped else (y, x)
    biases = [net.drawn(_CHANNELS, size=0.3)] if bias else []
    return net.file(net.add("SkipLayerNormalization", *operands, *net.norm(), *biases, epsilon=1e-6))


def runtime(source, ids):
    """Return onnxruntime's result on the model as it is."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(source, options)
    feeds = {
        "input_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "position_ids": np.arange(len(ids)),
        "attention_mask": np.ones_like(ids),
    }
    given = session.get_inputs()
    kinds = {each.name: np.int32 if "int32" in each.type else np.int64 for each in given}
    (found,) = session.run(None, {name: feeds[name][np.newaxis].astype(kind) for name, kind in kinds.items()})
    return found.reshape(-1, found.shape[-1])


def assert_equal(source, *, seed=3):
    blocks = read_blocks(source, tokens=_TOKENS)
    for ids in sentences(3, seed=seed):
        wanted = runtime(source, ids)
        assert np.abs(float_results(blocks, ids) - wanted).max() < 1e-4 * np.abs(wanted).max()
    return blocks


@pytest.mark.parametrize("form", ["BiasGelu", "FastGelu", "FastGelu without a bias"])
@pytest.mark.parametrize("swapped", [False, True])
def test_fused_operators_compute_what_onnxruntime_does(form, swapped):
    blocks = assert_equal(fused(form, swapped=swapped, seed=swapped))
    kinds = [type(block) for block in blocks.blocks]
    # Positions and types are rows of one sum; a bias lies in its product.
    assert kinds == [Lookup, Rows, Sum, Norm, Dense, Function, Dense, Sum, Norm]
    assert [operator_of(block) for block in blocks.blocks if isinstance(block, Function)] == ["Gelu"]
    biased = [bool(block.bias.any()) for block in blocks.blocks if isinstance(block, Dense)]
    assert biased == [form != "FastGelu without a bias", True]


@pytest.mark.parametrize("options", [{"types": False}, {"numbers": True}, {"bias": False}])
def test_operands_may_be_left_out(options):
    assert_equal(fused(**options))


def test_numbers_may_be_cast_before_their_rows():
    """onnxruntime's embedding takes int32."""
    proto = onnx.load_model_from_string(fused())
    proto.graph.node.insert(0, helper.make_node("Cast", ["ids"], ["input_ids"], to=TensorProto.INT32))
    proto.graph.input[0].name = "ids"
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    blocks = read_blocks(proto.SerializeToString(), tokens=_TOKENS)
    (lookup,) = (block for block in blocks.blocks if isinstance(block, Lookup))
    assert (blocks.ids, lookup.inputs) == ("ids", ("ids",))


def test_a_sum_that_is_read_besides_is_the_fused_operators_result():
    net = _Graph(5)
    x = embedded(net)
    y = net.product(x, _CHANNELS, _CHANNELS)
    results = ["", "", "between"]
    net.add("SkipLayerNormalization", y, x, *net.norm(), net.drawn(_CHANNELS), results=results, epsilon=1e-6)
    source = net.file(net.add("Add", net.nodes[-1].output[0], "between", domain=""))
    blocks = assert_equal(source)
    assert [type(block) for block in blocks.blocks].count(Sum) == 3
    assert "between" in blocks.channels


def test_a_fused_model_is_quantized_with_its_own_inner_tensors():
    source = fused()
    made = measure(source, sentences(8), longest=_TOKENS, first=True)
    (ids,) = sentences(1, seed=9)
    network = made.network(Rule(), [len(ids)])
    (output,) = network.outputs
    stored = execute(network, {"input_ids": ids.astype(np.int32).reshape(1, -1, 1)})[output]
    found, wanted = stored[0, 0] * network.values[output].scale, runtime(source, ids)[0]
    assert found @ wanted / np.linalg.norm(found) / np.linalg.norm(wanted) > 0.999


@pytest.mark.parametrize(
    ("fixed", "wanted"),
    [(True, {"SkipLayerNormalization", "FusedMatMul"}), (False, {"BiasGelu", "FusedMatMul"})],
)
def test_onnxruntimes_optimizer_writes_models_that_are_read(tmp_path, fixed, wanted):
    """It fuses sums into LayerNorm where lengths are known, and biases into Gelu where they are not."""
    from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

    proto = onnx.load_model_from_string(model("gelu", "mask", layers=2))
    for each in proto.graph.input if fixed else ():
        each.type.tensor_type.shape.dim[1].dim_value = _TOKENS
    source = proto.SerializeToString()
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "made.onnx")
    InferenceSession(source, options)
    optimized = (tmp_path / "made.onnx").read_bytes()
    assert wanted <= {node.op_type for node in onnx.load_model_from_string(optimized).graph.node}
    blocks = read_blocks(optimized, tokens=_TOKENS)
    for ids in sentences(2, least=_TOKENS, most=_TOKENS):
        exact = runtime(source, ids)
        assert np.abs(float_results(blocks, ids) - exact).max() < 1e-4 * np.abs(exact).max()


def _pooled(*nodes, parameters):
    proto = onnx.load_model_from_string(model("gelu"))
    for name, numbers in parameters.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.array(numbers, np.int64), name))
    proto.graph.node.extend(nodes)
    proto.graph.output[0].name = "last"
    proto.graph.output[0].type.Clear()
    proto.graph.output[0].type.tensor_type.elem_type = 1
    return proto.SerializeToString()


_CUT = {"zero": [0], "one": [1], "axis": [1], "flat": [-1, 64], "number": 0, "second": 1, "minus": [-2]}


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("Gather", ["tokens", "number"], ["last"], axis=1)],
        [helper.make_node("Gather", ["tokens", "zero"], ["last"], axis=-2)],
        [helper.make_node("Slice", ["tokens", "zero", "one", "axis"], ["last"])],
        [
            helper.make_node("Slice", ["tokens", "zero", "one", "minus"], ["cut"]),
            helper.make_node("Squeeze", ["cut", "axis"], ["last"]),
        ],
        [
            helper.make_node("Slice", ["tokens", "zero", "one", "axis"], ["cut"]),
            helper.make_node("Reshape", ["cut", "flat"], ["last"]),
        ],
    ],
)
def test_the_first_token_is_read(nodes):
    blocks = assert_equal(_pooled(*nodes, parameters=_CUT))
    assert isinstance(blocks.blocks[-1], First)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [helper.make_node("Gather", ["tokens", "second"], ["last"], axis=1, name="extra")],
            r"extra \(Gather: of anything but the first token",
        ),
        (
            [helper.make_node("Gather", ["tokens", "number"], ["last"], axis=2, name="extra")],
            r"extra \(Gather: of anything but the first token",
        ),
        (
            [helper.make_node("Slice", ["tokens", "one", "flat", "axis"], ["last"], name="extra")],
            r"extra \(Slice: of anything but the first token",
        ),
        (
            [
                helper.make_node("Gather", ["tokens", "number"], ["row"], axis=1),
                helper.make_node("Gather", ["row", "number"], ["last"], axis=0, name="extra"),
            ],
            r"extra \(Gather: extra reads the mean or the first of the tokens, which is an output",
        ),
    ],
)
def test_other_tokens_are_refused(nodes, message):
    cut = {**_CUT, "flat": [_TOKENS]}
    with pytest.raises(InputError, match=message):
        read_blocks(_pooled(*nodes, parameters=cut), tokens=_TOKENS)


def test_a_function_behind_the_first_token_is_refused():
    """The pooler of BERT: its product reads 8 bits of a row that has 16."""
    with pytest.raises(InputError, match="pooler reads the mean or the first of the tokens"):
        read_blocks(model(outputs=True), tokens=_TOKENS, outputs=["pooler"])


def test_the_quantized_first_token_is_that_of_its_sentence():
    made = measure(model("gelu"), sentences(8), longest=_TOKENS, first=True)
    assert [type(block) for block in made.blocks.blocks][-1] is First
    assert not any(isinstance(block, Mean) for block in made.blocks.blocks)
    texts = sentences(3, seed=8)
    network = made.network(Rule(), [len(ids) for ids in texts])
    ids = np.concatenate(texts).astype(np.int32).reshape(1, -1, 1)
    values = execute(network, {"input_ids": ids})
    (output,) = network.outputs
    (operator,) = (each for each in network.operators if each.output == output)
    before, after = (network.values[name] for name in (operator.inputs[0], output))
    firsts = np.cumsum([0, *map(len, texts[:-1])])
    exact = values[before.name][0, firsts] * (before.scale / after.scale)
    assert np.abs(values[output][0] - exact).max() < 0.501


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (("FusedMatMul", {"transA": 1}), "transA, transBatchA or transBatchB"),
        (("FusedMatMul", {"transB": 1}), "transB of other operands than queries and keys"),
    ],
)
def test_forms_without_a_counterpart_are_refused_by_name(node, message):
    op, attributes = node
    rows = _TOKENS if "transA" in attributes else _CHANNELS
    net = _Graph(0)
    x = embedded(net)
    made = net.add(op, x, net.drawn(rows, _CHANNELS), **attributes)
    with pytest.raises(InputError, match=f"{made} \\({op}: {message}"):
        read_blocks(net.file(made), tokens=_TOKENS)


def test_a_mask_index_that_is_read_is_refused():
    net = _Graph(0)
    embedded(net)
    source = net.file("mask_index")
    with pytest.raises(InputError, match=r"EmbedLayerNormalization \(node EmbedLayerNormalization_0"):
        read_blocks(source, tokens=_TOKENS)
