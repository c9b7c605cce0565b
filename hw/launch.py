"""A launch of a kernel, as a driver prepares it and a card or a simulation carries it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[Any]
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """What stands behind one pointer argument."""

    argument: str  #: Name of the pointer in the argument table.
    #: The bytes placed there before the launch, uint8, one dimension; None for a buffer the kernel writes.
    #: One that is not read back either is the kernel's own: zeros that take no space until they are written.
    data: NDArray[np.uint8] | None
    size_bytes: int  #: Length of the buffer.
    output: bool = False  #: Whether it is read back after the launch.
    #: Addresses within ``data``: at each byte offset lies a 64-bit offset, little endian, to which the
    #: address of the buffer of the given argument is added once that is known.
    links: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One kernel call, or several one after the other without reset between them."""

    scalars: Mapping[str, int]  #: By argument name.
    buffers: tuple[Buffer, ...]  #: Behind the pointers.
    nulls: tuple[str, ...] = ()  #: Pointers that point nowhere: their registers are 0.
    #: Of each further call the arguments that change; a pointer's number counts from where its buffer begins,
    #: and one that is None points nowhere.
    then: tuple[Mapping[str, int | None], ...] = ()
