"""A small transformer on tokens with drawn weights, in the forms that exporters write."""

from __future__ import annotations

import argparse
import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hw.attention.driver.mask import Mask
from hw.network.graph.transformer.blocks import (
    Attention,
    Block,
    Blocks,
    Dense,
    First,
    Function,
    Lookup,
    Mean,
    Norm,
    Rows,
    Sum,
    real,
)
from hw.network.graph.transformer.quantize import measure
from hw.network.graph.transformer.rule import Rule, quantized
from sim.golden.attention.exact import attention_float64


@dataclass(frozen=True, kw_only=True)
class Size:
    """Extents of a transformer."""

    channels: int = 64
    heads: int = 2
    inner: int = 128  #: Channels between the products of a layer's second half.
    rows: int = 50  #: Of the table of tokens.
    positions: int = 40


SMALL = Size()
ROWS, POSITIONS = SMALL.rows, SMALL.positions
#: Forms that may be combined.
FORMS = ("norm", "gelu", "tanh", "heads", "attention", "mask", "causal", "int8", "split", "gemm", "before")


class _Net:
    def __init__(self, seed: int, size: Size) -> None:
        self.size = size
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.parameters: list[onnx.TensorProto] = []

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        name = name or f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"node:{name}", **attributes))
        return name

    def keep(self, array: Any, kind: type = np.float32) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters.append(numpy_helper.from_array(np.asarray(array, kind), name))
        return name

    def numbers(self, *numbers: int) -> str:
        return self.keep(numbers, np.int64)

    def drawn(self, *shape: int, size: float = 1.0) -> np.ndarray:
        return (self.rng.normal(size=shape) * size).astype(np.float32)


def model(*forms: str, layers: int = 1, seed: int = 0, outputs: bool = False, size: Size = SMALL) -> bytes:
    """Return a float model: ids and a mask in, tokens out.

    ``forms``:
    * ``norm``: LayerNorm written out. ``before``: it comes before the products.
    * ``gelu``: Gelu's operator. ``tanh``: its approximation.
    * ``heads``: keys transposed on their own. ``attention``: its operator.
    * ``mask``: scores masked, and guarded against NaN. ``causal``: later tokens are hidden.
    * ``int8``: weights are cast and scaled. ``gemm``: products are Gemm.
    * ``split``: one product for queries, keys and values.
    """
    assert set(forms) <= set(FORMS)
    net = _Net(seed, size)
    words = net.keep(net.drawn(size.rows, size.channels))
    x = net.add("Gather", words, "input_ids", axis=0)
    count = net.add("Gather", net.add("Shape", "input_ids"), net.numbers(1))
    rows = net.add("Slice", net.keep(net.drawn(size.positions, size.channels)), net.numbers(0), count)
    x = _norm(net, net.add("Add", x, rows), forms)
    for _ in range(layers):
        before = "before" in forms
        y = _attention(net, _norm(net, x, forms) if before else x, forms, count)
        x = net.add("Add", x, _dense(net, y, size.channels, forms))
        x = x if before else _norm(net, x, forms)
        y = _dense(net, _norm(net, x, forms) if before else x, size.inner, forms)
        x = net.add("Add", _dense(net, _gelu(net, y, forms), size.channels, forms), x)
        x = x if before else _norm(net, x, forms)
    net.add("Identity", x, name="tokens")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, [1, "length"])
        for name in ("input_ids", *(("attention_mask",) if "mask" in forms else ()))
    ]
    made = [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, [1, "length", size.channels])]
    if outputs:
        first = net.add("Gather", "tokens", net.numbers(0), axis=1)
        net.add("Tanh", first, name="pooler")
        made.append(helper.make_tensor_value_info("pooler", TensorProto.FLOAT, None))
    graph = helper.make_graph(net.nodes, "sentences", inputs, made, net.parameters)
    return bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10
        ).SerializeToString()
    )


@functools.cache
def small(*forms: str, first: bool = False, **choices: Any) -> Blocks:
    """Return a model of two layers and the mean or the first of its tokens, quantized by a rule of these
    choices.
    """
    source = model(*forms, layers=2)
    made = measure(source, sentences(8), longest=POSITIONS, mean=not first, first=first)
    return quantized(made.blocks, made.ranges, Rule(**choices))


def _norm(net: _Net, x: str, forms: tuple[str, ...]) -> str:
    channels = net.size.channels
    gain, bias = net.keep(1 + net.drawn(channels, size=0.5)), net.keep(net.drawn(channels, size=0.1))
    if "norm" not in forms:
        return net.add("LayerNormalization", x, gain, bias, axis=-1, epsilon=1e-6)
    centered = net.add("Sub", x, net.add("ReduceMean", x, net.numbers(-1)))
    squares = net.add("Pow", centered, net.keep(2.0))
    variance = net.add("Add", net.add("ReduceMean", squares, net.numbers(-1)), net.keep(1e-6))
    normal = net.add("Div", centered, net.add("Sqrt", variance))
    return net.add("Add", net.add("Mul", normal, gain), bias)


def _weights(net: _Net, rows: int, columns: int, forms: tuple[str, ...]) -> str:
    weights = net.drawn(rows, columns, size=1 / math.sqrt(rows))
    if "int8" not in forms:
        return net.keep(weights)
    scales = np.abs(weights).max(axis=0, keepdims=True) / 127
    stored = net.keep(np.rint(weights / scales), np.int8)
    return net.add("Mul", net.add("Cast", stored, to=TensorProto.FLOAT), net.keep(scales))


def _dense(net: _Net, x: str, columns: int, forms: tuple[str, ...], *, rows: int = 0) -> str:
    rows = rows or (net.size.inner if columns == net.size.channels and "inner" in x else net.size.channels)
    weights, bias = _weights(net, rows, columns, forms), net.keep(net.drawn(columns, size=0.1))
    if "gemm" in forms:
        flat = net.add("Reshape", x, net.numbers(-1, rows))
        made = net.add("Gemm", flat, weights, bias)
        return net.add("Reshape", made, net.numbers(1, -1, columns))
    return net.add("Add", bias, net.add("MatMul", x, weights))


def _gelu(net: _Net, x: str, forms: tuple[str, ...]) -> str:
    name = f"inner{len(net.nodes)}"
    if "gelu" in forms:
        return net.add("Gelu", x, name=name)
    if "tanh" in forms:
        cube = net.add("Mul", net.add("Pow", x, net.keep(3.0)), net.keep(0.044715))
        inside = net.add("Mul", net.add("Add", x, cube), net.keep(math.sqrt(2 / math.pi)))
        whole = net.add("Add", net.add("Tanh", inside), net.keep(1.0))
    else:
        whole = net.add("Add", net.add("Erf", net.add("Div", x, net.keep(math.sqrt(2)))), net.keep(1.0))
    return net.add("Mul", x, net.add("Mul", net.keep(0.5), whole), name=name)


def _attention(net: _Net, x: str, forms: tuple[str, ...], count: str) -> str:
    channels, count_of_heads = net.size.channels, net.size.heads
    size = channels // count_of_heads
    if "split" in forms:
        whole = _dense(net, x, 3 * channels, forms)
        parts = [f"{whole}:{part}" for part in "qkv"]
        net.nodes.append(
            helper.make_node("Split", [whole, net.numbers(channels, channels, channels)], parts, axis=-1)
        )
    else:
        parts = [_dense(net, x, channels, forms) for _ in "qkv"]
    if "attention" in forms:
        more = {
            "q_num_heads": count_of_heads,
            "kv_num_heads": count_of_heads,
            "is_causal": int("causal" in forms),
        }
        return net.add("Attention", *parts, **more)
    shape = net.numbers(1, -1, count_of_heads, size)
    orders = ([0, 2, 1, 3], [0, 2, 1, 3] if "heads" in forms else [0, 2, 3, 1], [0, 2, 1, 3])
    heads = [
        net.add("Transpose", net.add("Reshape", part, shape), perm=order)
        for part, order in zip(parts, orders, strict=True)
    ]
    if "heads" in forms:
        root = net.keep(size**-0.25)
        turned = net.add("Transpose", heads[1], perm=[0, 1, 3, 2])
        scores = net.add("MatMul", net.add("Mul", heads[0], root), net.add("Mul", turned, root))
    else:
        scores = net.add("Div", net.add("MatMul", *heads[:2]), net.keep(math.sqrt(size)))
    scores = _masked(net, scores, forms, count)
    shares = net.add("Softmax", scores, axis=-1)
    if "mask" in forms:
        shares = net.add("Where", net.add("IsNaN", shares), net.keep(0.0), shares)
    mixed = net.add("Transpose", net.add("MatMul", shares, heads[2]), perm=[0, 2, 1, 3])
    return net.add("Reshape", mixed, net.numbers(1, -1, channels))


def _masked(net: _Net, scores: str, forms: tuple[str, ...], count: str) -> str:
    if "mask" in forms:
        seen = net.add("Cast", net.add("Unsqueeze", "attention_mask", net.numbers(1, 2)), to=TensorProto.BOOL)
        scores = net.add("Add", scores, net.add("Where", seen, net.keep(0.0), net.keep(-3e38)))
    if "causal" in forms:
        square = net.add("Expand", net.keep(1.0), net.add("Concat", count, count, axis=0))
        seen = net.add("Cast", net.add("Trilu", square, upper=0), to=TensorProto.BOOL)
        scores = net.add("Where", seen, scores, net.keep(-1e9))
    return scores


def float_results(blocks: Blocks, ids: np.ndarray) -> np.ndarray:
    """Return the blocks' first output for one sentence, in float64."""
    found: dict[str, np.ndarray] = {}
    for block in blocks.blocks:
        read = [found[name] for name in block.inputs if name != blocks.ids]
        found[block.output] = _float_result(block, read, ids)
    return found[next(iter(blocks.outputs.values()))]


def _float_result(block: Block, read: list[np.ndarray], ids: np.ndarray) -> np.ndarray:
    if isinstance(block, Lookup):
        return real(block.table)[ids]
    if isinstance(block, Rows):
        return real(block.rows)[: len(ids)]
    if isinstance(block, Sum):
        return read[0] + read[1]
    if isinstance(block, Norm):
        centered = read[0] - read[0].mean(axis=1, keepdims=True)
        spread = np.sqrt((centered**2).mean(axis=1, keepdims=True) + block.epsilon)
        return centered / spread * block.gain + block.bias
    if isinstance(block, Dense):
        return read[0] @ real(block.weights) + block.bias
    if isinstance(block, Function):
        return np.asarray(block.real(read[0]), np.float64)
    if isinstance(block, First):
        return read[0][:1]
    if isinstance(block, Mean):
        return read[0].mean(axis=0, keepdims=True)
    assert isinstance(block, Attention)
    heads = [each.reshape(len(ids), block.heads, -1).transpose(1, 0, 2) for each in read]
    mixed = attention_float64(*heads, softmax_scale=block.scale, mask=Mask(causal=block.causal))
    return mixed.transpose(1, 0, 2).reshape(len(ids), -1)


def sentences(count: int, *, seed: int = 1, least: int = 3, most: int = 20) -> list[np.ndarray]:
    """Return drawn numbers of tokens."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, ROWS, int(tokens)) for tokens in rng.integers(least, most + 1, count)]


#: By name: forms, layers and extents of networks in their papers.  ViT has rows of a table for its patches.
SHAPES: dict[str, tuple[tuple[str, ...], int, Size]] = {
    "minilm": (("gelu",), 6, Size(channels=384, heads=12, inner=1536, positions=512)),
    "gpt2_medium_layer": (
        ("before", "causal", "tanh", "split"),
        1,
        Size(channels=1024, heads=16, inner=4096, positions=1024),
    ),
    "vit_b16": (("before", "gelu", "split"), 12, Size(channels=768, heads=12, inner=3072, positions=197)),
}


def shaped(name: str, *, tokens: int) -> bytes:
    """Return a quantized network of `SHAPES` with drawn weights, for sentences of up to ``tokens``."""
    forms, layers, size = SHAPES[name]
    source = model(*forms, layers=layers, size=size)
    calibrating = sentences(2, least=tokens, most=tokens)
    return measure(source, calibrating, longest=tokens, name=name).file(Rule())


def main() -> None:
    """Write a network of shapes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=sorted(SHAPES))
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("-o", "--output", type=Path, default=Path("build"), help="folder")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    path = given.output / f"{given.network}.onnx"
    path.write_bytes(shaped(given.network, tokens=given.tokens))
    print(path)


if __name__ == "__main__":
    main()
