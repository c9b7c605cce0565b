"""Writes a quantized transformer as an ONNX model: each tensor behind QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hw.network.graph.quantize import IR_VERSION
from hw.network.graph.refs import Array, Constant
from hw.network.graph.transformer.blocks import (
    POOLS,
    Attention,
    Block,
    Blocks,
    Dense,
    First,
    Function,
    Lookup,
    Mean,
    Norm,
    Quantization,
    Rows,
    Sum,
)

#: First operator set that has attention.
_OPSET = 23


def written(blocks: Blocks) -> bytes:
    """Return the model's file."""
    made = _Writer(blocks)
    for block in blocks.blocks:
        made.block(block)
    outputs = []
    for name, tensor in blocks.outputs.items():
        made.node("Identity", [made.real[tensor]], name)
        one = any(block.output == tensor and isinstance(block, POOLS) for block in blocks.blocks)
        shape = [1, blocks.channels[tensor]] if one else [1, "tokens", blocks.channels[tensor]]
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    graph = helper.make_graph(
        made.nodes,
        blocks.name,
        [helper.make_tensor_value_info(blocks.ids, TensorProto.INT64, [1, "tokens"])],
        outputs,
        made.parameters,
    )
    sets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=IR_VERSION, producer_name="loomwork")
    return bytes(model.SerializeToString())


class _Writer:
    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.nodes: list[onnx.NodeProto] = []
        self.parameters: list[onnx.TensorProto] = []
        #: By tensor: the real numbers behind its integers.
        self.real: dict[str, str] = {}
        self._kept: set[str] = set()
        self._count: str = ""

    def node(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        """Add an operator, and return its result."""
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def keep(self, name: str, array: Array) -> str:
        """Add a parameter once."""
        if name not in self._kept:
            self._kept.add(name)
            self.parameters.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def numbers(self, *numbers: int) -> str:
        """Add whole numbers as a parameter."""
        return self.keep("numbers:" + "_".join(map(str, numbers)), np.array(numbers, np.int64))

    def number(self, number: int) -> str:
        """Add a whole number without a dimension as a parameter."""
        return self.keep(f"number:{number}", np.array(number, np.int64))

    def constant(self, name: str, constant: Constant, stored: str | None = None) -> str:
        """Add a constant's integers and scales, and return its real numbers."""
        scales = constant.scales.reshape(-1).astype(np.float32)
        whole = scales.size == 1
        inputs = [
            stored or self.keep(f"{name}:stored", constant.stored),
            self.keep(f"{name}:scale", scales[0] if whole else scales),
            self.keep(f"{name}:zero", np.zeros(() if whole else scales.shape, constant.stored.dtype)),
        ]
        return self.node("DequantizeLinear", inputs, f"{name}:real", **({} if whole else {"axis": 1}))

    def block(self, block: Block) -> None:
        """Add a block, and the quantization of its result."""
        name = block.output
        if isinstance(block, Rows):
            assert isinstance(block.rows, Constant)
            stored = self.keep(f"{name}:stored", block.rows.stored)
            cut = self.node("Slice", [stored, self.numbers(0), self.tokens()], f"{name}:cut")
            self.real[name] = self.constant(name, block.rows, cut)
            return
        made = self._made(block, [self.real.get(each, each) for each in block.inputs])
        self.real[name] = self._quantized(name, made, self._blocks.quantizations[name])

    def tokens(self) -> str:
        """Return the number of tokens, as a list of one."""
        if not self._count:
            shape = self.node("Shape", [self._blocks.ids], "tokens:shape")
            self._count = self.node("Gather", [shape, self.numbers(1)], "tokens:count")
        return self._count

    def _quantized(self, name: str, source: str, quantization: Quantization) -> str:
        scales = quantization.scales.reshape(-1).astype(np.float32)
        whole = scales.size == 1
        kind = np.int16 if quantization.bits == 16 else np.uint8 if quantization.unsigned else np.int8
        zeros = np.full(() if whole else scales.shape, quantization.zero, kind)
        more = {} if whole else {"axis": 2}
        parameters = [
            self.keep(f"{name}:scale", scales[0] if whole else scales),
            self.keep(f"{name}:zero", zeros),
        ]
        stored = self.node("QuantizeLinear", [source, *parameters], f"{name}:quantized", **more)
        return self.node("DequantizeLinear", [stored, *parameters], f"{name}:real", **more)

    def _made(self, block: Block, inputs: list[str]) -> str:
        """Add a block's operators, and return its result."""
        name = block.output
        if isinstance(block, Lookup):
            assert isinstance(block.table, Constant)
            return self.node("Gather", [self.constant(f"{name}:table", block.table), *inputs], name, axis=0)
        if isinstance(block, Sum):
            return self.node("Add", inputs, name)
        if isinstance(block, Mean):
            return self.node("ReduceMean", [*inputs, self.numbers(1)], name, keepdims=0)
        if isinstance(block, First):
            return self.node("Gather", [*inputs, self.number(0)], name, axis=1)
        if isinstance(block, Norm):
            rows = [
                self.keep(f"{name}:{part}", array.astype(np.float32))
                for part, array in (("gain", block.gain), ("bias", block.bias))
            ]
            return self.node("LayerNormalization", [*inputs, *rows], name, axis=-1, epsilon=block.epsilon)
        if isinstance(block, Dense):
            assert isinstance(block.weights, Constant)
            weights = self.constant(f"{name}:weights", block.weights)
            product = self.node("MatMul", [*inputs, weights], f"{name}:product")
            return self.node("Add", [product, self.keep(f"{name}:bias", block.bias.astype(np.float32))], name)
        if isinstance(block, Function):
            return self.node(block.op, inputs, name)
        assert isinstance(block, Attention)
        heads = {"q_num_heads": block.heads, "kv_num_heads": block.heads}
        return self.node("Attention", inputs, name, scale=block.scale, is_causal=int(block.causal), **heads)
