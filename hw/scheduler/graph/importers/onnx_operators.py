"""Accesses of each ONNX operator (the input rows that an output row needs), and its multiply-accumulates.

Rows run along one dimension: the height of images (N, C, H, W), the tokens of sequences.  An input without an
access is needed whole.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hw.scheduler.graph.graph import Access
from hw.scheduler.graph.importers.rules.call import Shape
from hw.scheduler.graph.importers.rules.table import REDUCTIONS

#: Accesses by the position of the input.
Accesses = dict[int, Access]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operator of a model, with all its shapes and constants."""

    op: str
    #: Tensor names, in ONNX's order; None for a parameter or an omitted input.
    inputs: tuple[str | None, ...]
    shapes: tuple[Shape, ...]  #: Of all inputs, parameters too; empty for an omitted input.
    stored: tuple[Shape, ...]  #: Shapes in memory; ``shapes`` may be views of them.
    output: Shape  #: Of the first output.
    attributes: Mapping[str, Any]
    #: Values of the inputs that are small constants (axes, starts, scales), by position.
    constants: Mapping[int, Sequence[float]]
    opset: int  #: Version of ONNX's operators that the model uses.
    outputs: int = 1  #: Number of used outputs.

    @property
    def input(self) -> Shape:
        """Shape of the first input."""
        return self.shapes[0]

    def first(self, name: str, default: int) -> int:
        """Return an attribute's value for the rows: the first of its values."""
        return int((self.attributes.get(name) or [default])[0])

    def axis(self, default: int = 0) -> int:
        """Return the attribute ``axis``, counted from 0."""
        return int(self.attributes.get("axis", default)) % len(self.input)

    def computed(self, *positions: int) -> bool:
        """Whether one of these inputs is known only when the network runs."""
        return any(position < len(self.inputs) and self.inputs[position] for position in positions)


def macs(node: Node) -> int:
    """Return the multiply-accumulates of a node."""
    if node.op in ("Conv", "DeformConv", "ConvTranspose"):
        image = node.input if node.op == "ConvTranspose" else node.output
        return math.prod(image) * math.prod(node.shapes[1][1:])
    if node.op in ("MatMul", "Gemm"):
        return math.prod(node.output) * node.input[0 if node.attributes.get("transA") else -1]
    return 0


def row_axis(shape: Shape) -> int | None:
    """Return the dimension counted in rows, or None."""
    return {1: 0, 2: 0, 3: 1, 4: 2}.get(len(shape))


def same_axis(shape: Shape, axis: int, other: Shape) -> int | None:
    """Return the dimension of the view ``other`` that equals dimension ``axis`` of ``shape``, or None."""
    outside = math.prod(shape[:axis])
    for candidate, extent in enumerate(other):
        if math.prod(other[:candidate]) == outside and extent == shape[axis]:
            return candidate
    return None


def _rows(axis: int | None, output_axis: int | None = None, **window: int) -> Accesses:
    """Access the first input along a dimension, by default the same as in the output; whole without one."""
    if axis is None:
        return {}
    return {0: Access(axis=axis, output_axis=axis if output_axis is None else output_axis, **window)}


def _elementwise(node: Node) -> Accesses:
    accesses: Accesses = {}
    output_axis = row_axis(node.output)
    if output_axis is None or node.attributes.get("training_mode"):
        return accesses  # a normalization in training measures all rows first
    for position, shape in enumerate(node.shapes):
        # Shapes are aligned at their ends; an operand broadcast along the rows is needed whole.
        axis = output_axis - len(node.output) + len(shape)
        if axis >= 0 and shape[axis] == node.output[output_axis]:
            accesses[position] = Access(axis=axis, output_axis=output_axis)
    return accesses


def _padding(node: Node, total: int, *, stated: bool = True) -> int:
    """Return the rows of padding before the first row; automatic padding splits ``total``."""
    automatic = node.attributes.get("auto_pad", b"NOTSET")
    if stated and automatic not in (b"SAME_UPPER", b"SAME_LOWER"):
        return node.first("pads", 0)
    return max(0, total) // 2 if automatic == b"SAME_UPPER" else -(-max(0, total) // 2)


def _window(node: Node) -> Accesses:
    """Access a sliding window over (N, C, H, ...) or (N, C, L): convolution and pooling."""
    extent = node.shapes[1][2] if node.op == "Conv" else node.first("kernel_shape", 1)
    stride, reach = node.first("strides", 1), (extent - 1) * node.first("dilations", 1) + 1
    if node.op == "Conv" or not node.attributes.get("auto_pad", b"NOTSET").startswith(b"SAME"):
        pad = _padding(node, (node.output[2] - 1) * stride + reach - node.input[2])
    else:
        # For pooling, onnxruntime pads as for a kernel without holes, and skips rows before a kernel smaller
        # than the stride.
        total = (-(-node.input[2] // stride) - 1) * stride + extent - node.input[2]
        pad = int((total + (node.attributes["auto_pad"] == b"SAME_LOWER")) / 2)
    return _rows(2, kernel=reach, stride=stride, pad=pad)


def _transposed_convolution(node: Node) -> Accesses:
    stride, reach = node.first("strides", 1), (node.shapes[1][2] - 1) * node.first("dilations", 1) + 1
    total = (node.input[2] - 1) * stride + node.first("output_padding", 0) + reach - node.output[2]
    pad = _padding(node, total, stated="output_shape" not in node.attributes)
    # Output row o sums input rows i with 0 <= o + pad - i * stride < reach.
    before = (reach - 1 - pad) // stride
    return _rows(2, kernel=before + -(-pad // stride) + 1, pad=before, up=stride)


def _deformable(node: Node) -> Accesses:
    """Every output pixel may read any input pixel: only offsets and masks are read row by row."""
    return {place: Access(axis=2, output_axis=2) for place in (2, 4) if place < len(node.inputs)}


def _reduction(node: Node) -> Accesses:
    rank, axis = len(node.input), row_axis(node.input)
    named = node.attributes.get("axes") or node.constants.get(1) or range(rank)
    reduced = {int(other) % rank for other in named}
    if axis is None or axis in reduced:
        return {}
    return _rows(axis, axis if len(node.output) == rank else axis - sum(other < axis for other in reduced))


def _along(node: Node) -> Accesses:
    """Softmax, normalization: row by row unless it runs along the rows."""
    axis = row_axis(node.output)
    # Old versions of Softmax ran over all dimensions from its axis on, as normalizations still do.
    softmax = node.op.endswith("Softmax")
    along = node.axis(1 if softmax and node.opset < 13 else -1)
    spans = not softmax or node.opset < 13
    return {} if axis is None or axis == along or (spans and along < axis) else _rows(axis)


def _skip_normalization(node: Node) -> Accesses:
    """Sum of two operands with normalization along the last dimension."""
    axis = row_axis(node.input)
    if axis is None:
        return {}
    return {position: Access(axis=axis, output_axis=axis) for position in (0, 1)}


def _matmul(node: Node) -> Accesses:
    ranks = len(node.input), len(node.output)
    return {} if min(*ranks, len(node.shapes[1])) < 2 else _rows(ranks[0] - 2, ranks[1] - 2)


def _gemm(node: Node) -> Accesses:
    accesses = _rows(1 if node.attributes.get("transA") else 0, 0)
    if len(node.shapes) > 2 and len(node.shapes[2]) == 2 and node.shapes[2][0] == node.output[0]:
        accesses[2] = Access()
    return accesses


def _concat(node: Node) -> Accesses:
    axis = row_axis(node.output)
    if axis is None:
        return {}
    # Side by side, or stacked along the rows: then an input's first row is the output's ``offset``.
    accesses, offset = {}, 0
    for position, shape in enumerate(node.shapes):
        accesses[position] = Access(axis=axis, output_axis=axis, pad=offset)
        offset += shape[axis] if node.axis() == axis else 0
    return accesses


def _split(node: Node) -> Accesses:
    axis = row_axis(node.input)
    return {} if axis == node.axis() else _rows(axis)


def _transpose(node: Node) -> Accesses:
    """Row by row of the stored tensor, in any order of dimensions."""
    order = [int(axis) for axis in node.attributes.get("perm") or reversed(range(len(node.output)))]
    rows = row_axis(node.stored[0])
    axis = None if rows is None else same_axis(node.stored[0], rows, node.input)
    if axis is None:
        axis = row_axis(node.input)
    return {} if axis is None else _rows(axis, order.index(axis))


def _slice(node: Node) -> Accesses:
    rank, axis = len(node.input), row_axis(node.input)
    starts = node.attributes.get("starts", node.constants.get(1))
    if axis is None or starts is None or node.computed(1, 2, 3, 4):
        return {}
    axes = node.attributes.get("axes", node.constants.get(3, range(len(starts))))
    steps = node.constants.get(4, [1] * len(starts))
    begin, step = 0, 1
    for index, along in enumerate(axes):
        if int(along) % rank == axis:
            begin, step = int(starts[index]), int(steps[index])
    begin = min(max(begin + node.input[axis] if begin < 0 else begin, 0), node.input[axis] - 1)
    return {} if step < 1 else _rows(axis, stride=step, pad=-begin)


def _pad(node: Node) -> Accesses:
    axis = row_axis(node.input)
    pads = node.attributes.get("pads") or node.constants.get(1)
    mirrored = node.attributes.get("mode", b"constant") in (b"reflect", b"wrap")
    if axis is None or pads is None or mirrored or len(node.shapes) > 3:
        return {}
    return _rows(axis, pad=int(pads[axis]))


def _resize(node: Node) -> Accesses:
    """Row by row if the number of rows grows by an integer factor."""
    axis = row_axis(node.input)
    if axis is None or node.output[axis] % node.input[axis] or not _whole_scale(node, axis):
        return {}
    attributes = node.attributes
    simple = node.op == "Upsample" or node.opset < 11
    place = b"asymmetric" if simple else attributes.get("coordinate_transformation_mode", b"half_pixel")
    rounding = b"floor" if simple else attributes.get("nearest_mode", b"round_prefer_floor")
    if place in (b"align_corners", b"tf_crop_and_resize"):
        return {}  # the ratio is not an integer
    # Row o is at most half a row from row o / up; usually that row is the nearest.
    exact = rounding == b"floor" if place == b"asymmetric" else rounding.startswith(b"round")
    reach = {b"nearest": 0 if exact else 1, b"cubic": 2}.get(attributes.get("mode", b"nearest"), 1)
    return _rows(axis, kernel=2 * reach + 1, pad=reach, up=node.output[axis] // node.input[axis])


def _whole_scale(node: Node, axis: int) -> bool:
    """Whether the factor equals the ratio of the shapes, in which a fraction may be lost."""
    position = 1 if node.op == "Upsample" or node.opset < 11 else 2
    stretched = node.attributes.get("keep_aspect_ratio_policy", b"stretch") == b"stretch"
    if node.computed(position) or not stretched:
        return False
    scales = node.attributes.get("scales") or node.constants.get(position)
    axes = [int(other) % len(node.output) for other in node.attributes.get("axes") or range(len(node.output))]
    factor = node.output[axis] // node.input[axis]
    return not scales or axis not in axes or scales[axes.index(axis)] == factor


def _blocks(node: Node) -> Accesses:
    """Squares of pixels that become channels, or the reverse."""
    block = int(node.attributes["blocksize"])
    return _rows(2, up=block) if node.op == "DepthToSpace" else _rows(2, kernel=block, stride=block)


def _tile(node: Node) -> Accesses:
    """Row by row if rows are not repeated."""
    axis = row_axis(node.input)
    return {} if axis is None or node.output[axis] != node.input[axis] else _rows(axis)


def _gather_rows(node: Node) -> Accesses:
    """Rows of a table, at the positions of their indices."""
    axis, indices = row_axis(node.output), node.shapes[1]
    batches = int(node.attributes.get("batch_dims", 0))
    if axis is None or batches or axis >= len(indices) - 1:
        return {}
    return {1: Access(axis=axis, output_axis=axis)}


def _gather(node: Node) -> Accesses:
    axis, along, indices = row_axis(node.output), node.axis(), len(node.shapes[1])
    if node.inputs[0] is None and along == 0 and axis is not None and axis < indices:
        return {1: Access(axis=axis, output_axis=axis)}  # rows of a table, by index
    source = row_axis(node.input)
    if source is None or axis is None or source == along:
        return {}
    kept = source if source < along else source + indices - 1
    return _rows(source, kept) if kept == axis else {}


_ELEMENTWISE = (
    "Abs Add And BatchNormalization Cast Ceil Clip Cos Div Elu Equal Erf Exp Floor Gelu Greater "
    "GreaterOrEqual HardSigmoid HardSwish LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg "
    "Not Or PRelu Pow QuantizeLinear DequantizeLinear Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus "
    "Softsign Sqrt Sub Sum Swish Tanh ThresholdedRelu Where Expand Trilu Xor Acos Acosh Asin Asinh Atan "
    "Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Celu Cosh IsInf IsNaN Shrink Sinh Tan"
)
_WHOLE = (
    "GlobalAveragePool GlobalMaxPool InstanceNormalization GroupNormalization ArgMax ArgMin TopK "
    "DynamicQuantizeLinear"
)

_SKIPPED = ("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")

#: The accesses of each supported operator, by ONNX's name.
OPERATORS: Mapping[str, Callable[[Node], Accesses]] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _elementwise),
    **dict.fromkeys(REDUCTIONS.split(), _reduction),
    **dict.fromkeys(_WHOLE.split(), lambda node: {}),
    **dict.fromkeys(("Conv", "MaxPool", "AveragePool", "LpPool"), _window),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization"), _along),
    "SimplifiedLayerNormalization": _along,
    **dict.fromkeys(_SKIPPED, _skip_normalization),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    # (N, C, ...): the rows are never the channels.
    "LRN": lambda node: _rows(2 if len(node.output) > 2 else None),
    "ConvTranspose": _transposed_convolution,
    "DeformConv": _deformable,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Concat": _concat,
    "Split": _split,
    "Transpose": _transpose,
    "Slice": _slice,
    "Pad": _pad,
    "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks,
    "Gather": _gather,
    "GatherND": _gather_rows,
    "Tile": _tile,
}

#: Operators that only change the shape of the same bytes.
VIEWS = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"))
