"""Operators with the traffic of a plainer one: quantized ones, and fusions of runtimes.

A stand-in names the plain operator and the positions of its operands; the others are scales, zero points and
the like. Shapes, accesses and multiply-accumulates are then those of the plain operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from hw.scheduler.graph.importers.rules.call import Misfit, Shape

#: The domain of onnxruntime's own operators, before the dot in an operator's full name.
RUNTIME = "com.microsoft"


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A plain operator that replaces another."""

    op: str  #: Name in ONNX's own domain.
    operands: tuple[int, ...] | slice  #: Positions of its operands among those of the other.
    #: Position, among the operands of the other, of one with the result's element type; None for floats.
    like: int | None = 0
    reads_others: bool = True  #: Whether the other operands are read, too.
    #: Positions of other operands with one value, or one for each index of a dimension of the result, and
    #: that dimension; the rest have one value.
    vectors: Mapping[int, int] = field(default_factory=dict)
    free: tuple[int, ...] = ()  #: Positions of other operands of any shape.
    #: Positions of operands with exactly one value for each index of a dimension of the result.
    exact: Mapping[int, int] = field(default_factory=dict)

    def positions(self, count: int) -> tuple[int, ...]:
        """Return the positions of the plain operator's operands among ``count`` of the other."""
        if isinstance(self.operands, slice):
            return tuple(range(count)[self.operands])
        return tuple(position for position in self.operands if position < count)

    def check_others(self, node: onnx.NodeProto, shapes: Sequence[Shape | None], result: Shape) -> None:
        """Refuse scales and zero points that do not fit the result."""
        plain = self.positions(len(shapes))
        for position, dimension in self.exact.items():
            values = result[dimension:][:1]
            if position < len(shapes) and shapes[position] not in (None, values):
                of = f"shape of operand {position} ({node.input[position]})"
                raise Misfit(of, shapes[position], f"{values}, a value a column")
        for position, shape in enumerate(shapes):
            if shape is None or position in (*plain, *self.free, *self.exact) or shape in ((), (1,)):
                continue
            axis = self.vectors.get(position)
            whole = (result[axis],) if axis is not None and -len(result) <= axis < len(result) else None
            if shape != whole:
                legal = "(), one value" + (f", or {whole}" if whole else "")
                raise Misfit(f"shape of operand {position} ({node.input[position]})", shape, legal)


#: By the operator's name.
STAND_INS: Mapping[str, StandIn] = {
    "QLinearConv": StandIn(op="Conv", operands=(0, 3, 8), vectors={4: 1, 5: 1}),
    "QLinearMatMul": StandIn(
        op="MatMul", operands=(0, 3), vectors={1: -2, 2: -2, 4: -1, 5: -1, 6: -2, 7: -2}
    ),
    "ConvInteger": StandIn(op="Conv", operands=(0, 1), vectors={3: 1}),
    "MatMulInteger": StandIn(op="MatMul", operands=(0, 1), vectors={2: -2, 3: -1}),
    "CastLike": StandIn(op="Cast", operands=(0,), reads_others=False, free=(1,)),
    **{
        f"{RUNTIME}.{name}": stand_in
        for name, stand_in in {
            "QLinearAdd": StandIn(op="Add", operands=(0, 3)),
            "QLinearMul": StandIn(op="Mul", operands=(0, 3)),
            "QLinearAveragePool": StandIn(op="AveragePool", operands=(0,)),
            "QLinearGlobalAveragePool": StandIn(op="GlobalAveragePool", operands=(0,)),
            "QLinearLeakyRelu": StandIn(op="LeakyRelu", operands=(0,)),
            "QLinearSigmoid": StandIn(op="Sigmoid", operands=(0,)),
            "QLinearSoftmax": StandIn(op="Softmax", operands=(0,)),
            "QLinearConcat": StandIn(op="Concat", operands=slice(2, None, 3), like=2),
            "QGemm": StandIn(op="Gemm", operands=(0, 3, 6), vectors={4: 1, 5: 1}),
            "MatMulIntegerToFloat": StandIn(
                op="MatMul", operands=(0, 1), like=None, vectors={2: -2, 3: -1, 4: -2, 5: -1}, exact={6: -1}
            ),
            "DynamicQuantizeMatMul": StandIn(
                op="MatMul", operands=(0, 1), like=None, vectors={2: -1, 3: -1}, exact={4: -1}
            ),
            "FusedConv": StandIn(op="Conv", operands=(0, 1, 2), free=(3,)),
            "Gelu": StandIn(op="Gelu", operands=(0,)),
            "FastGelu": StandIn(op="Gelu", operands=(0,), exact={1: -1}),
            "QuickGelu": StandIn(op="Gelu", operands=(0,)),
            "BiasGelu": StandIn(op="Add", operands=(0, 1), exact={1: -1}),
            "QuantizeLinear": StandIn(op="QuantizeLinear", operands=(0, 1, 2), like=2),
            "DequantizeLinear": StandIn(op="DequantizeLinear", operands=(0, 1, 2), like=None),
        }.items()
    },
}


def full_name(node: onnx.NodeProto) -> str:
    """Return an operator's name, with its domain where that is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


#: Operators that onnxruntime's optimization makes from ONNX's own.
_FUSIONS = frozenset(
    (
        "BiasAdd", "BiasDropout", "BiasSoftmax", "BiasSplitGelu", "ConvTransposeWithDynamicPads",
        "DecoderAttention", "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention",
        "EmbedLayerNormalization", "FusedGemm", "FusedMatMulActivation", "GatedRelativePositionBias",
        "GemmFastGelu", "GemmFloat8", "GroupNorm", "LongformerAttention", "NhwcConv", "NhwcFusedConv",
        "NhwcMaxPool", "PackedAttention", "PackedMultiHeadAttention", "QAttention",
        "QEmbedLayerNormalization", "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization",
        "QOrderedLongformerAttention", "QOrderedMatMul", "QuickGelu", "RelativePositionBias",
        "RemovePadding", "RestorePadding", "SkipGroupNorm", "TransposeMatMul",
    )
)  # fmt: skip
#: Operators written by its tools for quantization and for weights of few bits.
_QUANTIZED = frozenset(
    (
        "DynamicQuantizeLSTM", "GatherBlockQuantized", "MatMulBnb4", "MatMulFpQ4", "QGemm",
        "QLinearConvTranspose", "QLinearReduceMean", "QLinearWhere", "QMoE",
    )
)  # fmt: skip
#: Remedies for unsupported operators; `advice` has those of all others.
_ADVICE = {
    **dict.fromkeys(
        ("NonZero", "NonMaxSuppression", "Unique", "Compress"),
        "its result's shape depends on data: end the model before it",
    ),
    **dict.fromkeys(
        ("If", "Loop", "Scan"), "unroll it, or fold it with constant inputs, for example by onnxsim"
    ),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), "export the network unrolled, a cell a step"),
    "Dropout in training": "export the network for inference",
}
#: Domains of the operators of QONNX and of tools around it.
_QONNX = ("qonnx.", "finn.", "onnx.brevitas")


def advice(name: str) -> str:
    """Return the remedy for an unsupported operator."""
    domain, _, op = name.rpartition(".")
    if name.endswith(" with channels last") or (domain == RUNTIME and op in _FUSIONS):
        return "export without onnxruntime's fusions (optimization level basic)"
    if domain == RUNTIME and op in _QUANTIZED:
        return "no fusion made it: import the network as it was before it was quantized"
    if domain == RUNTIME:
        return "no fusion made it: export the network with ONNX's own operators"
    if domain.startswith(_QONNX):
        return "export the network with QuantizeLinear and DequantizeLinear (QCDQ) instead of QONNX"
    if domain:
        return "export it as ONNX's own operators"
    return _ADVICE.get(name, "describe it in a graph's JSON")
