"""Items of streams as bits."""

from typing import Any

from amaranth.hdl import Const, Shape
from amaranth.lib import data


def item_bits(shape: Any, item: Any) -> int:
    """Return the bits of a payload.

    ``shape``: of the payload. ``item``: a number, or for a structured shape a (nested) mapping or list.

    >>> item_bits(data.StructLayout({"a": 4, "b": 4}), {"a": 1, "b": -1})
    241
    """
    if isinstance(shape, data.Layout):
        return int(shape.const(item).as_bits())
    return int(Const(int(item), Shape(Shape.cast(shape).width)).value)
