"""What each ONNX operator costs, and which rows of its inputs an output row needs.

Rows run along one dimension: the height of images (N, C, H, W), the tokens of sequences.  An input that is
not listed in the accesses is needed whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hw.scheduler.graph.graph import Access

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operator of a model, with everything about it known.

    Parameters
    ----------
    op : str
        ONNX's name for it.
    inputs : tuple of str or None
        Tensor names, in ONNX's order; None for a parameter or what is left out.
    shapes : tuple of Shape
        Of all inputs, parameters too; empty for what is left out.
    outputs : tuple of Shape
    attributes : mapping
    constants : mapping of int to list of numbers
        Values of the inputs that are small constants (axes, starts, scales), by position.
    stored : tuple of Shape
        Of all inputs as they lie in memory, where ``shapes`` are views of that; empty when they are the same.
    opset : int
        Version of ONNX's operators that the model uses.
    """

    op: str
    inputs: tuple[str | None, ...]
    shapes: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[int, Sequence[float]] = field(default_factory=dict)
    stored: tuple[Shape, ...] = ()
    opset: int = 20

    @property
    def output(self) -> Shape:
        """Shape of the first output."""
        return self.outputs[0]

    def computed(self, *positions: int) -> bool:
        """Whether one of these inputs is known only when the network runs."""
        return any(position < len(self.inputs) and self.inputs[position] for position in positions)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Multiply-accumulates, and accesses by position of the input."""

    macs: int = 0
    accesses: Mapping[int, Access] = field(default_factory=dict)


def row_axis(shape: Shape) -> int | None:
    """Give the dimension counted in rows; None where there is none to speak of."""
    return {1: 0, 2: 0, 3: 1, 4: 2}.get(len(shape))


def same_axis(shape: Shape, axis: int, other: Shape) -> int | None:
    """Give the dimension of another view of the same elements that is the dimension of a shape; None when
    there is none.
    """
    outside = math.prod(shape[:axis])
    for candidate, extent in enumerate(other):
        if math.prod(other[:candidate]) == outside and extent == shape[axis]:
            return candidate
    return None


def _rows(node: Node, position: int, **window: int) -> dict[int, Access]:
    """Access row by row, where input and output have the same rows."""
    shape, output = node.shapes[position], node.output
    axis, output_axis = row_axis(shape), row_axis(output)
    if axis is None or output_axis is None or len(shape) != len(output):
        return {}
    return {position: Access(axis=axis, output_axis=output_axis, **window)}


def _elementwise(node: Node) -> Cost:
    if node.attributes.get("training_mode"):
        return Cost()  # a normalization that measures all rows first
    accesses: dict[int, Access] = {}
    output_axis = row_axis(node.output)
    for position, shape in enumerate(node.shapes):
        # Shapes are aligned at their ends; what is broadcast along the rows is needed whole.
        axis = None if output_axis is None else output_axis - (len(node.output) - len(shape))
        if axis is not None and axis >= 0 and shape[axis] == node.output[output_axis or 0]:
            accesses[position] = Access(axis=axis, output_axis=output_axis or 0)
    return Cost(accesses=accesses)


def _window(node: Node, kernel: Sequence[int]) -> Access | None:
    """Access of a sliding window over (N, C, H, ...) or (N, C, L)."""
    spatial = len(node.shapes[0]) - 2
    strides = node.attributes.get("strides") or [1] * spatial
    dilations = node.attributes.get("dilations") or [1] * spatial
    reach = (kernel[0] - 1) * dilations[0] + 1
    before = (node.attributes.get("pads") or [0] * 2 * spatial)[0]
    automatic = node.attributes.get("auto_pad", b"NOTSET")
    if automatic in (b"SAME_UPPER", b"SAME_LOWER"):
        extent, out = node.shapes[0][2], node.output[2]
        total = max(0, (out - 1) * strides[0] + reach - extent)
        before = total // 2 if automatic == b"SAME_UPPER" else -(-total // 2)
    return Access(axis=2, output_axis=2, kernel=reach, stride=strides[0], pad=before)


def _convolution(node: Node) -> Cost:
    weight = node.shapes[1]
    access = _window(node, weight[2:])
    return Cost(macs=math.prod(node.output) * math.prod(weight[1:]), accesses={0: access} if access else {})


def _transposed_convolution(node: Node) -> Cost:
    weight, spatial = node.shapes[1], len(node.shapes[0]) - 2
    stride = (node.attributes.get("strides") or [1] * spatial)[0]
    dilation = (node.attributes.get("dilations") or [1] * spatial)[0]
    pad = (node.attributes.get("pads") or [0] * 2 * spatial)[0]
    reach = (weight[2] - 1) * dilation + 1
    automatic = node.attributes.get("auto_pad", b"NOTSET")
    if automatic in (b"SAME_UPPER", b"SAME_LOWER") or "output_shape" in node.attributes:
        more = (node.attributes.get("output_padding") or [0] * spatial)[0]
        total = max(0, (node.shapes[0][2] - 1) * stride + more + reach - node.output[2])
        pad = total // 2 if automatic == b"SAME_UPPER" else -(-total // 2)
    # Output row o sums input rows i with 0 <= o + pad - i * stride < reach.
    before = (reach - 1 - pad) // stride
    access = Access(axis=2, output_axis=2, kernel=before + -(-pad // stride) + 1, pad=before, up=stride)
    return Cost(macs=math.prod(node.shapes[0]) * math.prod(weight[1:]), accesses={0: access})


def _deformable(node: Node) -> Cost:
    """Every output pixel may read any input pixel: only the offsets are read row by row."""
    weight = node.shapes[1]
    macs = math.prod(node.output) * math.prod(weight[1:])
    rows = Access(axis=2, output_axis=2)
    return Cost(macs=macs, accesses={position: rows for position in (2, 4) if position < len(node.inputs)})


def _pool(node: Node) -> Cost:
    access = _window(node, node.attributes["kernel_shape"])
    return Cost(accesses={0: access} if access else {})


def _axes(node: Node) -> set[int]:
    """Give the dimensions of a reduction, counted from 0; all of them when none are named."""
    named = node.attributes.get("axes") or node.constants.get(1)
    rank = len(node.shapes[0])
    return {int(axis) % rank for axis in named} if named else set(range(rank))


def _reduction(node: Node) -> Cost:
    rank, axis = len(node.shapes[0]), row_axis(node.shapes[0])
    if axis is None or axis in _axes(node):
        return Cost()
    kept = axis
    if len(node.output) != rank:
        kept -= sum(other < axis for other in _axes(node))
    return Cost(accesses={0: Access(axis=axis, output_axis=kept)})


def _along(node: Node) -> Cost:
    """Softmax, normalization: row by row unless it runs along the rows."""
    axis = row_axis(node.output)
    rank = len(node.output)
    # Softmax once ran over everything from its axis on, as normalizations still do.
    spans = not node.op.endswith("Softmax") or node.opset < 13
    default = 1 if node.op.endswith("Softmax") and node.opset < 13 else -1
    along = int(node.attributes.get("axis", default)) % rank
    if axis is None or axis == along or (spans and along < axis):
        return Cost()
    return Cost(accesses=_rows(node, 0))


def _across_channels(node: Node) -> Cost:
    """Local response normalization: of (N, C, ...), whose rows are never the channels."""
    if len(node.output) < 3:
        return Cost()
    return Cost(accesses={0: Access(axis=2, output_axis=2)})


def _matmul(node: Node) -> Cost:
    left, right = node.shapes[:2]
    macs = math.prod(node.output) * left[-1]
    if len(left) < 2 or len(node.output) < 2 or len(right) < 2:
        return Cost(macs=macs)
    accesses = {0: Access(axis=len(left) - 2, output_axis=len(node.output) - 2)}
    return Cost(macs=macs, accesses=accesses)


def _gemm(node: Node) -> Cost:
    transposed = bool(node.attributes.get("transA", 0))
    depth = node.shapes[0][0 if transposed else 1]
    accesses = {0: Access(axis=1 if transposed else 0, output_axis=0)}
    if len(node.shapes) > 2 and len(node.shapes[2]) == 2 and node.shapes[2][0] == node.output[0]:
        accesses[2] = Access()
    return Cost(macs=math.prod(node.output) * depth, accesses=accesses)


def _concat(node: Node) -> Cost:
    axis = row_axis(node.output)
    if axis is None:
        return Cost()
    # Side by side, or one below the other: then an input's first row is the output's ``offset``.
    below = int(node.attributes["axis"]) % len(node.output) == axis
    accesses, offset = {}, 0
    for position, shape in enumerate(node.shapes):
        accesses[position] = Access(axis=axis, output_axis=axis, pad=offset)
        offset += shape[axis] if below else 0
    return Cost(accesses=accesses)


def _split(node: Node) -> Cost:
    axis = row_axis(node.shapes[0])
    if axis is None or int(node.attributes.get("axis", 0)) % len(node.shapes[0]) == axis:
        return Cost()
    return Cost(accesses={0: Access(axis=axis, output_axis=axis)})


def _transpose(node: Node) -> Cost:
    """Row by row of what lies in memory, wherever these rows go."""
    order = [int(axis) for axis in node.attributes.get("perm") or reversed(range(len(node.output)))]
    seen, stored = node.shapes[0], node.stored[0] if node.stored else node.shapes[0]
    rows = row_axis(stored)
    axis = None if rows is None else same_axis(stored, rows, seen)
    if axis is None:
        axis = row_axis(seen)
    if axis is None:
        return Cost()
    return Cost(accesses={0: Access(axis=axis, output_axis=order.index(axis))})


def _slice(node: Node) -> Cost:
    rank, axis = len(node.shapes[0]), row_axis(node.shapes[0])
    if axis is None or node.computed(1, 2, 3, 4):
        return Cost()
    if "starts" in node.attributes:
        starts, axes, steps = node.attributes["starts"], node.attributes.get("axes"), None
    elif 1 in node.constants:
        starts, axes, steps = node.constants[1], node.constants.get(3), node.constants.get(4)
    else:
        return Cost()
    axes = axes if axes is not None else range(len(starts))
    begin, step = 0, 1
    for index, along in enumerate(axes):
        if int(along) % rank == axis:
            begin, step = int(starts[index]), int(steps[index]) if steps is not None else 1
    extent = node.shapes[0][axis]
    begin = min(max(begin + extent if begin < 0 else begin, 0), extent - 1)
    if step < 1:
        return Cost()
    return Cost(accesses={0: Access(axis=axis, output_axis=axis, stride=step, pad=-begin)})


def _pad(node: Node) -> Cost:
    axis = row_axis(node.shapes[0])
    pads = node.attributes.get("pads") or node.constants.get(1)
    mirrored = node.attributes.get("mode", b"constant") in (b"reflect", b"wrap")
    if axis is None or pads is None or mirrored or len(node.shapes) > 3:
        return Cost()
    return Cost(accesses={0: Access(axis=axis, output_axis=axis, pad=int(pads[axis]))})


def _resize(node: Node) -> Cost:
    """Row by row where the rows' number grows by a whole factor."""
    before, after = node.shapes[0], node.output
    axis = row_axis(before)
    if axis is None or after[axis] % before[axis] or not _whole_scale(node, axis):
        return Cost()
    attributes = node.attributes
    mode = attributes.get("mode", b"nearest")
    simple = node.op == "Upsample" or node.opset < 11
    place = b"asymmetric" if simple else attributes.get("coordinate_transformation_mode", b"half_pixel")
    rounding = b"floor" if simple else attributes.get("nearest_mode", b"round_prefer_floor")
    if place in (b"align_corners", b"tf_crop_and_resize"):
        return Cost()  # the ratio is not a whole number then
    # Row o lies within half a row of row o / up, or right of it: mostly the nearest is just that row.
    exact = rounding == b"floor" if place == b"asymmetric" else rounding.startswith(b"round")
    reach = {b"nearest": 0 if exact else 1, b"cubic": 2}.get(mode, 1)
    up = after[axis] // before[axis]
    return Cost(accesses={0: Access(axis=axis, output_axis=axis, kernel=2 * reach + 1, pad=reach, up=up)})


def _whole_scale(node: Node, axis: int) -> bool:
    """Whether the factor is what the shapes say: a fraction may be rounded away in them."""
    factor = node.output[axis] // node.shapes[0][axis]
    if node.attributes.get("keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return False
    position = 1 if node.op == "Upsample" or node.opset < 11 else 2
    scales = node.attributes.get("scales") or node.constants.get(position)
    if node.computed(position):
        return False
    axes = [int(other) % len(node.output) for other in node.attributes.get("axes") or range(len(node.output))]
    return not scales or axis not in axes or scales[axes.index(axis)] == factor


def _depth_to_space(node: Node) -> Cost:
    return Cost(accesses={0: Access(axis=2, output_axis=2, up=int(node.attributes["blocksize"]))})


def _space_to_depth(node: Node) -> Cost:
    block = int(node.attributes["blocksize"])
    return Cost(accesses={0: Access(axis=2, output_axis=2, kernel=block, stride=block)})


def _gather(node: Node) -> Cost:
    rank, axis = len(node.shapes[0]), row_axis(node.output)
    along = int(node.attributes.get("axis", 0)) % rank
    if node.inputs[0] is None and along == 0 and axis is not None and axis < len(node.shapes[1]):
        return Cost(accesses={1: Access(axis=axis, output_axis=axis)})  # rows of a table, by index
    source = row_axis(node.shapes[0])
    if source is None or axis is None or source == along:
        return Cost()
    kept = source if source < along else source + len(node.shapes[1]) - 1
    return Cost(accesses={0: Access(axis=source, output_axis=kept)}) if kept == axis else Cost()


_ELEMENTWISE = (
    "Abs Add And BatchNormalization Cast Ceil Clip Cos Div Elu Equal Erf Exp Floor Gelu Greater "
    "GreaterOrEqual HardSigmoid HardSwish LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg "
    "Not Or PRelu Pow QuantizeLinear DequantizeLinear Reciprocal Relu Round Selu Sigmoid Sign Sin Softplus "
    "Softsign Sqrt Sub Sum Swish Tanh ThresholdedRelu Where Expand"
)
_REDUCTIONS = "ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"

#: What each supported operator costs, by ONNX's name.
OPERATORS: Mapping[str, Callable[[Node], Cost]] = {
    **dict.fromkeys(_ELEMENTWISE.split(), _elementwise),
    **dict.fromkeys(_REDUCTIONS.split(), _reduction),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), lambda node: Cost()),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization"), _along),
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization"), lambda node: Cost()),
    **dict.fromkeys(("ArgMax", "TopK"), lambda node: Cost()),
    "LRN": _across_channels,
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "DeformConv": _deformable,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Concat": _concat,
    "Split": _split,
    "Transpose": _transpose,
    "Slice": _slice,
    "Pad": _pad,
    "Resize": _resize,
    "Upsample": _resize,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Gather": _gather,
}

#: Operators that only give the same bytes another shape.
VIEWS = frozenset(("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"))
