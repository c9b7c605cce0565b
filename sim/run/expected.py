"""The bytes that a launch leaves in its output buffers, from the golden model's integers.

A test bench without Loomwork compares them. Every layout of an engine has one reader; it also locates each
byte of its tensors here: the reader reads buffers that hold the number of each byte instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.launch import Buffers, Bytes, Launch, Tensors


@dataclass(frozen=True, kw_only=True, eq=False)
class Expected:
    """Bytes of an output buffer after the call."""

    content: Bytes  #: As long as the buffer; 0 where no byte is known.
    mask: Bytes  #: 255 where the byte is known, 0 elsewhere.

    @property
    def known_bytes(self) -> int:
        """Number of known bytes."""
        return int(np.count_nonzero(self.mask))


def expected_bytes(
    launch: Launch, read: Callable[[Buffers], Tensors], golden: Tensors
) -> dict[str, Expected]:
    """Return the known bytes of each output buffer that has any, by argument.

    ``read``: turns the output buffers into tensors, each of whose bytes is one of a buffer, whatever its
    value.  ``golden``: the same tensors of the golden model.

    Raises `ValueError` where ``read`` computes, or two tensors of ``golden`` differ in a shared byte.
    """
    sizes = {buffer.argument: buffer.size_bytes for buffer in launch.buffers if buffer.output}
    places = places_of(sizes, read, golden)
    known = joined(golden, golden)
    content, mask = (np.zeros(sum(sizes.values()), np.uint8) for _ in range(2))
    content[places], mask[places] = known, 255
    contents, masks = split(content, sizes), split(mask, sizes)
    if not np.array_equal(joined(read(contents), golden), known):
        raise ValueError("the reader computes, or golden tensors contradict each other")
    return {name: Expected(content=contents[name], mask=masks[name]) for name in sizes if masks[name].any()}


def places_of(
    sizes: Mapping[str, int], read: Callable[[Buffers], Tensors], golden: Tensors
) -> NDArray[np.uint32]:
    """Return, for each byte of the tensors, its number among all bytes of the buffers."""
    total = sum(sizes.values())
    digits = np.zeros((sum(tensor.nbytes for tensor in golden.values()), 4), np.uint8)
    for n in range(4):
        # One byte of every number at a time: a buffer's byte holds no more.
        run = 1 << (8 * n)
        turn = np.repeat(np.arange(min(256, -(-total // run)), dtype=np.uint8), run)
        numbers = np.tile(turn, -(-total // turn.size))[:total]
        digits[:, n] = joined(read(split(numbers, sizes)), golden)
    return digits.view("<u4").reshape(-1)


def split(content: Bytes, sizes: Mapping[str, int]) -> dict[str, Bytes]:
    """Return the contents of buffers, from all of them one behind the other."""
    ends = np.cumsum(list(sizes.values()))
    return dict(zip(sizes, np.split(content, ends[:-1]), strict=True))


def joined(tensors: Tensors, order: Tensors) -> Bytes:
    """Return the bytes of tensors, one tensor behind the other in the order of ``order``'s names."""
    return np.concatenate([np.frombuffer(tensors[name].tobytes(), np.uint8) for name in order])
