"""A quantized network: values of one or two bytes an element, and the operators between them.

Shapes are ``(height, width, channels)`` without a batch; a vector is ``(1, 1, channels)``.  Tokens are the
pixels of one row, ``(1, tokens, channels)``, those of one sentence after those of another.

Values are int8: an unsigned one has its top bit flipped and its zero point lowered by 128, which changes no
real value.  The others are int16, or int32 numbers of a table's rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError

Shape = tuple[int, int, int]
#: Channels whose scale a value may divide by a power of two, and the largest exponent.
GROUP_CHANNELS, MOST_GROUP_SHIFT = 64, 7


@dataclass(frozen=True, kw_only=True)
class Value:
    """One tensor between operators: ``real = scale * (stored - zero)``.

    ``group_shifts``: for each group of channels, the exponent of the power of two that divides its scale.
    """

    name: str
    shape: Shape
    scale: float  #: Exactly representable in float32, positive.
    zero: int  #: Zero point, from -128 to 127; 0 of more than 8 bits.
    unsigned: bool = False  #: Whether the model's own elements are uint8; stored ones are 128 less.
    bits: int = 8  #: 8 or 16; 32 of numbers of rows.
    group_shifts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        where = f"value {self.name!r}"
        if len(self.shape) != 3 or min(self.shape) < 1:
            raise InputError(f"shape of {where}", self.shape, "height, width and channels, each at least 1")
        if not (np.isfinite(self.scale) and self.scale > 0 and float(np.float32(self.scale)) == self.scale):
            raise InputError(f"scale of {where}", self.scale, "a positive float32")
        if not -128 <= self.zero <= 127:
            raise InputError(f"zero point of {where}", self.zero, "from -128 to 127")
        if self.bits not in _TYPES:
            raise InputError(f"bits of {where}", self.bits, "8, 16 or 32")
        if self.bits > 8 and (self.zero or self.unsigned or self.group_shifts):
            raise InputError(
                f"zero point of {where}", self.zero, "0, without groups: it has more than 8 bits"
            )
        if self.group_shifts:
            shifts, groups = self.group_shifts, -(-self.shape[2] // GROUP_CHANNELS)
            if len(shifts) != groups or min(shifts) < 0 or max(shifts) > MOST_GROUP_SHIFT:
                legal = f"{groups} numbers from 0 to {MOST_GROUP_SHIFT}: one a group of {GROUP_CHANNELS}"
                raise InputError(f"shifts of groups of {where}", shifts, legal)

    @property
    def kind(self) -> type[np.int8] | type[np.int16] | type[np.int32]:
        """Type of the stored elements."""
        return _TYPES[self.bits]

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest stored element."""
        return -(1 << self.bits - 1), (1 << self.bits - 1) - 1

    @property
    def lifts(self) -> NDArray[np.int64]:
        """How far sums of each channel are shifted left, so that all are in units of `finest_scale`."""
        found = max(self.group_shifts, default=0) - np.array(self.group_shifts or (0,), np.int64)
        return np.resize(np.repeat(found, GROUP_CHANNELS), self.shape[2])

    @property
    def finest_scale(self) -> float:
        """The least scale of a group."""
        return self.scale * 0.5 ** max(self.group_shifts, default=0)

    @property
    def elements(self) -> int:
        """Elements of the tensor."""
        height, width, channels = self.shape
        return height * width * channels


_TYPES: dict[int, type[np.int8] | type[np.int16] | type[np.int32]] = {8: np.int8, 16: np.int16, 32: np.int32}


@dataclass(frozen=True, kw_only=True)
class Window:
    """The window of a convolution or a pool: sizes as (vertical, horizontal)."""

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  #: Top, left, bottom, right.

    def output(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width of the output for an input of this size."""
        top, left, bottom, right = self.pads
        sizes = ((height, top + bottom), (width, left + right))
        found = [
            (size + pad - dilation * (kernel - 1) - 1) // stride + 1
            for (size, pad), kernel, stride, dilation in zip(
                sizes, self.kernel, self.strides, self.dilations, strict=True
            )
        ]
        return found[0], found[1]


@dataclass(frozen=True, kw_only=True)
class Operator:
    """Its names, and the bounds of its stored results."""

    kind: ClassVar[str]
    name: str
    inputs: tuple[str, ...]
    output: str
    #: ``low``, ``high``: results are clamped to them, as by a Relu.
    low: int = -128
    high: int = 127


@dataclass(frozen=True, kw_only=True, eq=False)
class Convolution(Operator):
    """A convolution, or a product with constant weights: a convolution with a kernel of 1 x 1.

    An input with groups of scales is summed in units of the finest: the sum of a group is shifted left.
    """

    kind = "conv"
    weights: NDArray[np.int8]  #: ``(kernel height, kernel width, channels of a group, output channels)``.
    bias: NDArray[np.int32]  #: In units of input scale, the finest of groups, times weight scale.
    weight_scales: NDArray[np.float32]  #: One an output channel.
    window: Window = Window()
    groups: int = 1

    @property
    def macs_of_pixel(self) -> int:
        """Multiplications of one output pixel."""
        return int(self.weights.size)


@dataclass(frozen=True, kw_only=True)
class Sum(Operator):
    """The sum of two values; the second may have one pixel for all, either one channel."""

    kind = "add"
    last: int = 0  #: The operand, 0 or 1, that onnxruntime adds last.


@dataclass(frozen=True, kw_only=True)
class Product(Operator):
    """The product of two values; the second may have one pixel for all, either one channel."""

    kind = "mul"


@dataclass(frozen=True, kw_only=True)
class MaxPool(Operator):
    """The greatest value in each window; pads never win.  Scale and zero point stay."""

    kind = "max_pool"
    window: Window


@dataclass(frozen=True, kw_only=True)
class AveragePool(Operator):
    """The mean of each window."""

    kind = "average_pool"
    window: Window
    counts_pads: bool = False  #: Whether a pad counts as an element of value 0.
    #: Whether onnxruntime adds the zero point before it rounds, so that ties are even with it.
    zero_first: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Operator):
    """A function of each element alone, as its 256 results, or as those of each group of channels."""

    kind = "table"
    function: str  #: Its ONNX name: ``Sigmoid``, ``Relu``, ``Requantize`` ...
    results: NDArray[np.int8]  #: For stored values from -128 on: 256, or ``(groups, 256)``.


@dataclass(frozen=True, kw_only=True)
class Concat(Operator):
    """Values one after the other along the channels; all have the output's scale and zero point."""

    kind = "concat"


@dataclass(frozen=True, kw_only=True)
class Softmax(Operator):
    """Softmax over the channels."""

    kind = "softmax"


@dataclass(frozen=True, kw_only=True, eq=False)
class Gather(Operator):
    """Rows of a table in memory, by the numbers in its input."""

    kind = "gather"
    table: NDArray[np.int16]  #: ``(rows, channels)``, in units of the output's scale.


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerNorm(Operator):
    """Each pixel's channels less their mean, over their deviation, times a gain, and a bias."""

    kind = "layer_norm"
    gain: NDArray[np.float32]  #: One a channel.
    bias: NDArray[np.float32]  #: One a channel, a real number.
    epsilon: float  #: Is added to the variance.


@dataclass(frozen=True, kw_only=True)
class Attention(Operator):
    """Attention of queries, keys and values, its inputs; tokens of one segment see one another."""

    kind = "attention"
    heads: int  #: Head n has the n-th part of the channels of each input.
    softmax_scale: float  #: Multiplies the products of queries and keys.
    segments: tuple[int, ...]  #: Tokens of each segment, in order.
    causal: bool = False  #: Whether a token sees no later ones.


@dataclass(frozen=True, kw_only=True)
class TokenMean(Operator):
    """The mean of each segment's tokens, or its first token."""

    kind = "token_mean"
    segments: tuple[int, ...]  #: Tokens of each segment, in order.
    first: bool = False  #: Whether only a segment's first token counts.


@dataclass(frozen=True, kw_only=True)
class ModelTensor:
    """An input or output of the model, as its users have it."""

    name: str  #: In the model.
    value: str  #: The network's value that stores it.
    shape: tuple[int, ...]  #: With the batch, 1.
    #: Dimensions: ``NCHW``, ``NHWC`` or ``NC``; ``CHW`` or ``HWC`` are one behind the batch.  ``NW`` are the
    #: numbers of tokens, ``NWC`` tokens.
    order: str
    real: bool  #: Whether its elements are real numbers, not the value's own integers.


#: Classes of operators on images by their kind.
KINDS: dict[str, type[Operator]] = {
    each.kind: each for each in (Convolution, Sum, Product, MaxPool, AveragePool, Table, Concat, Softmax)
}


@dataclass(frozen=True, kw_only=True)
class Network:
    """Values and operators, in an order in which each reads only values that exist."""

    name: str
    values: Mapping[str, Value]
    operators: tuple[Operator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, NDArray[Any]]  #: Values that no operator makes and no input holds.
    #: ``model_inputs``, ``model_outputs``: the same as the model's users have them.
    model_inputs: tuple[ModelTensor, ...] = ()
    model_outputs: tuple[ModelTensor, ...] = ()

    def __post_init__(self) -> None:
        made = {*self.inputs, *self.constants}
        for operator in self.operators:
            for name in operator.inputs:
                if name not in made:
                    raise InputError(f"input of operator {operator.name!r}", name, "a value made before it")
            if operator.output in made:
                raise InputError(f"output of operator {operator.name!r}", operator.output, "made once")
            made.add(operator.output)
        for name in self.outputs:
            if name not in made:
                raise InputError("output of the network", name, "a value that an operator makes")

    @cached_property
    def macs(self) -> int:
        """Multiply-accumulates of all convolutions and products with weights."""
        found = 0
        for operator in self.operators:
            if isinstance(operator, Convolution):
                height, width, _ = self.values[operator.output].shape
                found += height * width * operator.macs_of_pixel
        return found

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of all weights, a byte each."""
        return sum(each.weights.nbytes for each in self.operators if isinstance(each, Convolution))
