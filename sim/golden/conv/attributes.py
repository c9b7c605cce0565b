"""Attributes of a convolution, as ONNX's Conv and DeformConv have them."""

from dataclasses import dataclass

from hw.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Attributes:
    """How the kernel moves over the map.

    Raises `InputError` for a number that is not whole, or too small.
    """

    #: ``strides``, ``dilations``: of rows and of columns.
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  #: Above, left, below, right.
    group: int = 1  #: Groups of channels that are convolved apart.
    offset_group: int = 1  #: Groups of input channels that have offsets and masks of their own.

    def __post_init__(self) -> None:
        for name, count, least in (("strides", 2, 1), ("dilations", 2, 1), ("pads", 4, 0)):
            value = getattr(self, name)
            if len(value) != count or not all(isinstance(n, int) and n >= least for n in value):
                raise InputError(name, value, f"{count} whole numbers of at least {least}")
        for name in ("group", "offset_group"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "a whole number of at least 1")

    def output_size(self, size: tuple[int, int], kernel: tuple[int, int]) -> tuple[int, int]:
        """Return rows and columns of the result for those of the map and of the kernel.

        Raises `InputError` when the kernel does not fit into the padded map.
        """
        found = []
        for axis in (0, 1):
            padded = size[axis] + self.pads[axis] + self.pads[axis + 2]
            reach = self.dilations[axis] * (kernel[axis] - 1) + 1
            if reach > padded:
                raise InputError("kernel", kernel, f"no larger than the padded map after dilation: {padded}")
            found.append((padded - reach) // self.strides[axis] + 1)
        return found[0], found[1]
