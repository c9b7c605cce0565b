"""A launch of a kernel: prepared by a driver, executed by a card or a simulation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[Any]
Bytes = NDArray[np.uint8]
Int8 = NDArray[np.int8]
Tensors = Mapping[str, Tensor]
#: Bytes of buffers by the names of their arguments.
Buffers = Mapping[str, Bytes]


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """The memory behind one pointer argument."""

    argument: str  #: Name of the pointer in the argument table.
    #: Content before the launch, uint8, one dimension; None for a buffer that the kernel writes.  A buffer
    #: without data and not read back is the kernel's own: zeros that take no space until written.
    data: Bytes | None
    size_bytes: int  #: Length of the buffer.
    output: bool = False  #: Whether the host reads it after the launch.
    #: Addresses within ``data``: (byte offset, argument).  The address of the argument's buffer is added to
    #: the 64-bit little-endian number at the offset, when it is known.
    links: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One kernel call, or several without a reset between them."""

    scalars: Mapping[str, int]  #: By argument name.
    buffers: tuple[Buffer, ...]  #: Behind the pointers.
    nulls: tuple[str, ...] = ()  #: Null pointers: their registers are 0.
    #: Arguments that change in each further call.  A pointer's number counts from the start of its buffer;
    #: None is a null pointer.
    then: tuple[Mapping[str, int | None], ...] = ()
