"""The shape rule of each operator."""

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
REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare"
)
_RUNTIME: Mapping[str, Rule] = {
    "Attention": attention.projected_attention,
    "FusedMatMul": products.fused_product,
    "GroupQueryAttention": attention.grouped_query_attention,
    "MatMulNBits": products.few_bit_product,
    "MultiHeadAttention": attention.multi_head_attention,
    "RotaryEmbedding": attention.rotary_embedding,
    "SkipLayerNormalization": normalization.skip_normalization,
    "SkipSimplifiedLayerNormalization": normalization.skip_normalization,
}

#: By the operator's name.
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_SAME.split(), elementwise.unary),
    **dict.fromkeys(_TOGETHER.split(), elementwise.broadcast_together),
    **dict.fromkeys(REDUCTIONS.split(), reductions.reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), reductions.arg_max),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), windows.pooling),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), windows.global_pooling),
    **dict.fromkeys(("Softmax", "LogSoftmax"), normalization.softmax),
    **dict.fromkeys(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
        normalization.layer_normalization,
    ),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), elementwise.quantization),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), moving.depth_and_space),
    **dict.fromkeys(("Resize", "Upsample"), moving.resizing),
    "Attention": attention.attention,
    "BatchNormalization": normalization.batch_normalization,
    "Clip": elementwise.clip,
    "Concat": moving.concatenation,
    "ConstantOfShape": elementwise.constant_of_shape,
    "Conv": windows.convolution,
    "ConvTranspose": windows.transposed_convolution,
    "DeformConv": windows.deformable_convolution,
    "Dropout": elementwise.dropout,
    "DynamicQuantizeLinear": elementwise.dynamic_quantization,
    "Einsum": products.einsum,
    "Expand": moving.expansion,
    "EyeLike": elementwise.eye_like,
    "Flatten": views.flatten,
    "Gather": moving.gather,
    "GatherElements": moving.gather_elements,
    "GatherND": moving.gather_nd,
    "Gemm": products.gemm,
    "GroupNormalization": normalization.group_normalization,
    "InstanceNormalization": normalization.instance_normalization,
    "LRN": normalization.response_normalization,
    "MatMul": products.matrix_product,
    "NonZero": moving.nonzero,
    "OneHot": elementwise.one_hot,
    "PRelu": elementwise.prelu,
    "Pad": moving.padding,
    "Range": elementwise.number_range,
    "Reshape": views.reshape,
    "RotaryEmbedding": attention.rotary_embedding,
    "Slice": moving.slicing,
    "Split": moving.split,
    "Squeeze": views.squeeze,
    "Tile": moving.tiling,
    "TopK": reductions.top_k,
    "Transpose": moving.transposition,
    "Trilu": elementwise.trilu,
    "Unsqueeze": views.unsqueeze,
    **{f"com.microsoft.{name}": rule for name, rule in _RUNTIME.items()},
}
