"""The shape rule of each operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hw.scheduler.graph.importers.rules import (
    attention,
    elementwise,
    moving,
    normalization,
    products,
    reductions,
    views,
    windows,
)  # fmt: skip
from hw.scheduler.graph.importers.rules.call import NodeCall, Shape

Rule = Callable[[NodeCall], list[Shape]]

_SAME = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Cast CastLike Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu "
    "HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink "
    "Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu"
)
_TOGETHER = (
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max "
    "Mean Min Mod Mul Or Pow Sub Sum Where Xor"
)
_REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare"
)
_RUNTIME: Mapping[str, Rule] = {
    "Attention": attention.projected_attention,
    "FusedMatMul": products.turned_product,
    "GroupQueryAttention": attention.grouped_heads,
    "MatMulNBits": products.packed_product,
    "MultiHeadAttention": attention.several_heads,
    "RotaryEmbedding": attention.rotary_embedding,
    "SkipLayerNormalization": normalization.skip_normalization,
    "SkipSimplifiedLayerNormalization": normalization.skip_normalization,
}

#: By the operator's name.
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_SAME.split(), elementwise.same),
    **dict.fromkeys(_TOGETHER.split(), elementwise.together),
    **dict.fromkeys(_REDUCTIONS.split(), reductions.reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), reductions.largest),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), windows.pooling),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), windows.global_pooling),
    **dict.fromkeys(("Softmax", "LogSoftmax"), normalization.along_axis),
    **dict.fromkeys(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
        normalization.layer_normalization,
    ),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), elementwise.quantization),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), moving.blocks),
    **dict.fromkeys(("Resize", "Upsample"), moving.resized),
    "Attention": attention.attention,
    "BatchNormalization": normalization.batch_normalization,
    "Clip": elementwise.clip,
    "Concat": moving.joined,
    "ConstantOfShape": elementwise.values_like,
    "Conv": windows.convolution,
    "ConvTranspose": windows.transposed_convolution,
    "DeformConv": windows.deformable_convolution,
    "Dropout": elementwise.dropout,
    "DynamicQuantizeLinear": elementwise.measured_quantization,
    "Einsum": products.summation,
    "Expand": moving.expanded,
    "EyeLike": elementwise.matrix_like,
    "Flatten": views.flattened,
    "Gather": moving.gathered,
    "GatherElements": moving.gathered_elements,
    "GatherND": moving.gathered_by_several,
    "Gemm": products.general_product,
    "GroupNormalization": normalization.group_normalization,
    "InstanceNormalization": normalization.instance_normalization,
    "LRN": normalization.response_normalization,
    "MatMul": products.product,
    "NonZero": moving.picked,
    "OneHot": elementwise.marked,
    "PRelu": elementwise.slopes,
    "Pad": moving.padded,
    "Range": elementwise.counting,
    "Reshape": views.reshaped,
    "RotaryEmbedding": attention.rotary_embedding,
    "Slice": moving.sliced,
    "Split": moving.parted,
    "Squeeze": views.squeezed,
    "Tile": moving.repeated,
    "TopK": reductions.largest_few,
    "Transpose": moving.turned,
    "Trilu": elementwise.triangle,
    "Unsqueeze": views.unsqueezed,
    **{f"com.microsoft.{name}": rule for name, rule in _RUNTIME.items()},
}
