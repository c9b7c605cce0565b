"""ONNX models: convolutions, products and attention among their operators."""

import numpy as np
import pytest

from hw.errors import InputError
from sim.workloads.layers import Attention, Convolution, Product
from sim.workloads.reader import read_workload

onnx = pytest.importorskip("onnx")
node, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info


def weights(name, *shape):
    return onnx.numpy_helper.from_array(np.zeros(shape, np.float32), name)


def tensor(name, shape):
    return value(name, onnx.TensorProto.FLOAT, shape)


def read(tmp_path, nodes, inputs, outputs, parameters, **variables):
    graph = onnx.helper.make_graph(
        nodes, "g", [tensor(*each) for each in inputs], [tensor(name, None) for name in outputs], parameters
    )
    path = tmp_path / "a.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    return read_workload(path, variables)


def test_a_network(tmp_path):
    found = read(
        tmp_path,
        [
            node("Conv", ["x", "w0"], ["a"], name="stem", strides=[2, 2], pads=[3, 2, 3, 1]),
            node("Relu", ["a"], ["b"], name="relu"),
            node("Conv", ["b", "w1"], ["c"], name="dw", group=16, auto_pad="SAME_LOWER", dilations=[2, 1]),
            node("GlobalAveragePool", ["c"], ["d"], name="pool"),
            node("Flatten", ["d"], ["e"]),
            node("Gemm", ["e", "w2"], ["y"], name="fc", transB=1),
        ],
        [("x", [2, 3, 32, 33])],
        ["y"],
        [weights("w0", 16, 3, 7, 5), weights("w1", 16, 1, 3, 4), weights("w2", 10, 16)],
    )
    by_name = {layer.name: layer for layer in found.layers}
    assert list(by_name) == ["stem", "relu", "dw", "pool", "fc"]
    assert (by_name["stem"].work, by_name["stem"].count) == (
        Convolution(
            channels=3, rows=32, columns=33, outputs=16, kernel=(7, 5), strides=(2, 2), pads=(3, 2, 3, 1)
        ),
        2,
    )
    assert by_name["dw"].work == Convolution(
        channels=16, rows=16, columns=16, outputs=16, kernel=(3, 4), dilations=(2, 1), pads=(2, 2, 2, 1),
        group=16,
    )  # fmt: skip
    assert by_name["fc"].work == Product(rows=2, columns=10, inner=16)
    assert [by_name[name].work.reason for name in ("relu", "pool")] == ["Relu", "GlobalAveragePool"]


def test_attention_with_a_mask(tmp_path):
    found = read(
        tmp_path,
        [
            node("MatMul", ["q", "kt"], ["s"], name="qk"),
            node("Mul", ["s", "scale"], ["s2"]),
            node("Add", ["s2", "mask"], ["s3"]),
            node("Softmax", ["s3"], ["p"], name="softmax"),
            node("MatMul", ["p", "v"], ["z"], name="av"),
            node("MatMul", ["z", "wz"], ["out"], name="project"),
        ],
        [("q", [2, 4, "L", 8]), ("kt", [2, 4, 8, "S"]), ("v", [2, 4, "S", 6]), ("mask", ["L", "S"])],
        ["out"],
        [weights("scale"), weights("wz", 6, 5)],
        L=3,
        S=7,
    )
    (attention,) = found.attentions
    assert attention.work == Attention(heads=8, queries=3, keys=7, query_size=8, value_size=6)
    assert attention.parts == ("qk", "s2", "s3", "softmax", "av")
    by_name = {layer.name: layer for layer in found.layers}
    assert (by_name["av"].work, by_name["av"].count) == (Product(rows=3, columns=6, inner=7), 8)
    assert (by_name["project"].work, by_name["project"].count) == (Product(rows=24, columns=5, inner=6), 1)


def test_convolutions_over_other_numbers_of_axes(tmp_path):
    nodes = [node("Conv", ["x", "w"], ["y"], name="one"), node("Conv", ["x3", "w3"], ["y3"], name="three")]
    found = read(
        tmp_path,
        nodes,
        [("x", [1, 4, 20]), ("x3", [1, 2, 5, 5, 5])],
        ["y", "y3"],
        [weights("w", 6, 4, 3), weights("w3", 2, 2, 3, 3, 3)],
    )
    assert found.layers[0].work == Convolution(channels=4, rows=1, columns=20, outputs=6, kernel=(1, 3))
    assert found.layers[1].work.reason == "convolution over 3 axes"


def test_what_is_wrong_is_one_line(tmp_path):
    with pytest.raises(InputError, match="dimension N of input 'x' must be given: --dim N=VALUE"):
        read(
            tmp_path,
            [node("Conv", ["x", "w"], ["y"])],
            [("x", ["N", 1, 4, 4])],
            ["y"],
            [weights("w", 1, 1, 3, 3)],
        )
    with pytest.raises(InputError, match="operators must be at least 1 that computes"):
        read(tmp_path, [node("Transpose", ["x"], ["y"])], [("x", [2, 3])], ["y"], [])
    (tmp_path / "b.onnx").write_bytes(b"no model")
    with pytest.raises(InputError, match="model must be an ONNX model"):
        read_workload(tmp_path / "b.onnx", {})
