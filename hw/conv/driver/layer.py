"""A convolution layer: sizes and attributes, checked."""

import math
from dataclasses import dataclass
from enum import Enum

from hw.conv.config import MAX_KERNEL, SIDE_BITS
from hw.conv.core.layouts import DILATION_BITS, PAD_BITS, Offsets
from hw.errors import InputError

#: Most channels of a map: the widths of sums are made for it.
MAX_CHANNELS = 2**14


class LayerKind(Enum):
    """The units that a layer needs."""

    DEPTHWISE = "depthwise"
    POINTWISE = "pointwise"
    SAMPLES = "samples"  # both: samples of the depthwise unit are the pointwise array's input


@dataclass(frozen=True, kw_only=True)
class ConvLayer:
    """A layer; names and orders are those of ONNX's Conv and DeformConv.

    Raises `InputError` for a number out of range, groups that do not divide, or a kernel larger than the
    padded map.
    """

    #: ``channels``, ``rows``, ``columns``: size of the map.
    channels: int
    rows: int
    columns: int
    outputs: int  #: Channels of the result.
    #: ``kernel``, ``strides``, ``dilations``: of rows and of columns.
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  #: Above, left, below, right.
    #: ``group``, ``offset_group``: groups of channels, and of channels with offsets of their own.
    group: int = 1
    offset_group: int = 1
    offsets: Offsets = Offsets.NONE  #: `Offsets`: of each tap, one a pixel (square), or none.
    bound: int | None = None  #: N pixels: offsets are clamped to -N ... N; None: not clamped.
    masked: bool = False  #: Samples have masks.
    dot: bool = False  #: Offsets are computed on chip.
    zero: int = 0  #: Zero point of the map.
    #: ``low``, ``high``: bounds of a result.
    low: int = -128
    high: int = 127
    raw: bool = False  #: Bytes of sums instead of results.
    #: Input channels of a group whose weights are 0 by construction, as in blocks of pixels: their products
    #: are not useful.
    idle_channels: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("channels", 1, MAX_CHANNELS),
            ("rows", 1, 2**SIDE_BITS - 1),
            ("columns", 1, 2**SIDE_BITS - 1),
            ("outputs", 1, MAX_CHANNELS),
            ("kernel", 1, MAX_KERNEL),
            ("strides", 1, MAX_KERNEL),
            ("dilations", 1, 2**DILATION_BITS - 1),
            ("pads", 0, 2**PAD_BITS - 1),
            ("zero", -128, 127),
            ("low", -128, 127),
            ("high", -128, 127),
        ):
            value = getattr(self, name)
            for number in value if isinstance(value, tuple) else (value,):
                if not isinstance(number, int) or not low <= number <= high:
                    raise InputError(name, value, f"from {low} to {high}")
        for name in ("group", "offset_group"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1 or self.channels % value:
                raise InputError(name, value, f"a divisor of {self.channels} channels")
        if self.outputs % self.group:
            raise InputError("group", self.group, f"a divisor of {self.outputs} outputs")
        most = self.channels // self.group - 1
        if not isinstance(self.idle_channels, int) or not 0 <= self.idle_channels <= most:
            raise InputError("idle_channels", self.idle_channels, f"from 0 to {most}")
        for axis in (0, 1):
            if self._reach(axis) > self._padded(axis):
                legal = f"no larger than the padded map after dilation: {self._padded(axis)}"
                raise InputError("kernel", self.kernel, legal)
            if self.out_size[axis] >= 2**SIDE_BITS:
                legal = f"such that a side of the result is at most {2**SIDE_BITS - 1}"
                raise InputError("pads", self.pads, legal)
        self._check_offsets()

    def _check_offsets(self) -> None:
        if self.dot and self.offset_group != 1:
            raise InputError("offset_group", self.offset_group, "1 with offsets computed on chip")
        if self.offsets is Offsets.NONE:
            for name, none in (("bound", None), ("masked", False), ("dot", False), ("offset_group", 1)):
                if getattr(self, name) != none:
                    raise InputError(name, getattr(self, name), f"{none} without offsets")
        if self.offsets is Offsets.SQUARE:
            if not self.kernel[0] % 2 == self.kernel[1] % 2 == 1:
                raise InputError("kernel", self.kernel, "odd, for a square offset has a middle tap")
            for name, only in (("masked", False), ("offset_group", 1)):
                if getattr(self, name) != only:
                    raise InputError(name, getattr(self, name), f"{only} with square offsets")
        if self.dot and (self.masked or self.out_size != (self.rows, self.columns)):
            raise InputError("dot", True, "false with masks, or where the result is not as large as the map")
        if self.bound is not None and (not isinstance(self.bound, int) or self.bound < 0):
            raise InputError("bound", self.bound, "a whole number of at least 0")

    def _padded(self, axis: int) -> int:
        return (self.rows, self.columns)[axis] + self.pads[axis] + self.pads[axis + 2]

    def _reach(self, axis: int) -> int:
        return self.dilations[axis] * (self.kernel[axis] - 1) + 1

    @property
    def kind(self) -> LayerKind:
        """The units that it needs."""
        if self.group == self.channels == self.outputs:
            return LayerKind.DEPTHWISE
        plain = self.kernel == self.strides == (1, 1) and not any(self.pads)
        return LayerKind.POINTWISE if plain and self.offsets is Offsets.NONE else LayerKind.SAMPLES

    @property
    def out_size(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        rows, columns = (
            (self._padded(axis) - self._reach(axis)) // self.strides[axis] + 1 for axis in (0, 1)
        )
        return rows, columns

    @property
    def taps(self) -> int:
        """Taps of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def useful_weights(self) -> int:
        """Weights, but for those of idle channels."""
        return self.outputs * (self.channels // self.group - self.idle_channels) * self.taps

    @property
    def useful_macs(self) -> int:
        """Multiply-accumulates of the results: each weight once for each pixel."""
        return math.prod(self.out_size) * self.useful_weights
