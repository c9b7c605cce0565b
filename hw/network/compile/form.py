"""Forms: how a value lies in the scratchpad and in memory, pixel by pixel in granules of 16 bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hw.network.graph.network import Window

#: Bytes of a granule: the channels that are read and written as one.
GRANULE = 16
#: Granules of a word of the scratchpad.
WORD_GRANULES = 4
WORD_BYTES = GRANULE * WORD_GRANULES
#: Most channels of an image whose pixels share granules, and the bytes of each pixel there.
FOLDED_CHANNELS = 4
#: Of the largest kernel: columns that serve two pixels a cycle, and least bytes a cycle from the memory.
_HALF_COLUMNS, _PORT_BYTES = 32, 28


@dataclass(frozen=True, kw_only=True)
class Fold:
    """An image whose granules hold several pixels of 4 bytes, for the one convolution that reads it.

    The granule at row Y and column X holds ``pixels[0]`` rows of ``pixels[1]`` columns, from row
    ``steps[0] * Y - top`` and column ``steps[1] * X - left`` on.  The convolution's pads are in it.
    """

    pixels: tuple[int, int]
    steps: tuple[int, int]  #: Less than ``pixels`` where granules hold the same pixels.
    top: int
    left: int
    rows: int
    columns: int
    window: Window  #: The convolution's window on granules.

    @property
    def size_bytes(self) -> int:
        """Bytes of the image."""
        return self.rows * self.columns * GRANULE

    @property
    def words(self) -> int:
        """Words of the scratchpad that a window reads."""
        return self.window.kernel[0] * -(-self.window.kernel[1] // WORD_GRANULES)


@dataclass(frozen=True, kw_only=True)
class Form:
    """The form of one value.

    ``positions``: the byte of each channel within a pixel's granules; empty for a folded image.  An element
    of 16 or 32 bits takes its byte and the next ones, the low one first.
    """

    height: int
    width: int
    granules: int  #: Of a pixel.
    positions: tuple[int, ...]
    zero: int = 0  #: Stored in bytes that hold no element.
    fold: Fold | None = None
    bits: int = 8  #: Of an element: 8, 16 or 32.

    @classmethod
    def plain(cls, shape: tuple[int, int, int], zero: int = 0, *, bits: int = 8) -> Form:
        """Return the form with the channels in order."""
        height, width, channels = shape
        size = bits // 8
        return cls(
            height=height,
            width=width,
            granules=-(-channels * size // GRANULE),
            positions=tuple(range(0, channels * size, size)),
            zero=zero,
            bits=bits,
        )

    @property
    def rows(self) -> int:
        """Rows of granules."""
        return self.height if self.fold is None else self.fold.rows

    @property
    def columns(self) -> int:
        """Pixels, or folded pixels, of a row."""
        return self.width if self.fold is None else self.fold.columns

    @property
    def row_granules(self) -> int:
        """Granules of a row."""
        return self.columns * self.granules

    @property
    def size_bytes(self) -> int:
        """Bytes of the value."""
        return self.rows * self.row_granules * GRANULE

    @property
    def is_plain(self) -> bool:
        """Whether the channels lie in order without gaps."""
        size = self.bits // 8
        return self.fold is None and self.positions == tuple(range(0, len(self.positions) * size, size))

    @cached_property
    def _index(self) -> NDArray[np.int64]:
        """The place of each channel among a pixel's elements."""
        return np.array(self.positions, np.int64) // (self.bits // 8)

    def stored(self, elements: NDArray[np.int8] | NDArray[np.int16]) -> NDArray[np.int8]:
        """Return a value as bytes, of shape ``(rows, columns, bytes of a pixel)``."""
        if self.bits > 8:
            size = self.bits // 8
            wide = np.zeros((self.rows, self.columns, self.granules * GRANULE // size), f"<i{size}")
            wide[..., self._index] = elements
            return wide.view(np.int8)
        found = np.full((self.rows, self.columns, self.granules * GRANULE), self.zero, np.int8)
        if self.fold is None:
            found[..., self._index] = elements
            return found
        fold, (height, width, channels) = self.fold, elements.shape
        for row in range(fold.pixels[0]):
            for column in range(fold.pixels[1]):
                first = FOLDED_CHANNELS * (row * fold.pixels[1] + column)
                down = np.arange(fold.rows) * fold.steps[0] - fold.top + row
                across = np.arange(fold.columns) * fold.steps[1] - fold.left + column
                y, x = (down >= 0) & (down < height), (across >= 0) & (across < width)
                pixels = elements[np.ix_(down[y], across[x])]
                found[np.ix_(y, x, np.arange(first, first + channels))] = pixels
        return found

    def elements(self, stored: NDArray[np.int8]) -> NDArray[np.int8] | NDArray[np.int16]:
        """Return the elements of a value that is not folded, from its bytes in any shape."""
        found = stored.reshape(self.height, self.width, self.granules * GRANULE)
        return (found.view("<i2") if self.bits == 16 else found)[..., self._index]


def fold_of(shape: tuple[int, int, int], window: Window, after: tuple[int, int, int]) -> Fold | None:
    """Return the fold of an image that one convolution reads, which makes a value of shape ``after``.

    Without it a pixel takes a granule, 16 bytes.  The fold is the one of fewest cycles on the largest kernel,
    to read the image from memory and to compute.  None where that is no fold.
    """
    if shape[2] > FOLDED_CHANNELS or window.kernel == (1, 1) or window.dilations != (1, 1):
        return None
    plain = _fold(shape, window, after, (1, 1), (1, 1))
    found = [plain]
    down, across = window.strides
    if down % 2 == 0 and across % 2 == 0:
        found.append(_fold(shape, window, after, (2, 2), (2, 2)))
    if across % 4 == 0:
        found.append(_fold(shape, window, after, (1, 4), (1, 4)))
    if 1 < window.kernel[0] <= 4:
        found.append(_fold(shape, window, after, (4, 1), (down, 1)))
    pixels = after[0] * after[1] // (2 if after[2] <= _HALF_COLUMNS else 1)
    best = min(found, key=lambda fold: fold.words * pixels + fold.size_bytes // _PORT_BYTES)
    return None if best is plain else best


def _fold(
    shape: tuple[int, int, int],
    window: Window,
    after: tuple[int, int, int],
    pixels: tuple[int, int],
    steps: tuple[int, int],
) -> Fold:
    kernel = [-(-taps // each) for taps, each in zip(window.kernel, pixels, strict=True)]
    inner = [stride // each for stride, each in zip(window.strides, steps, strict=True)]
    rows, columns = (
        (out - 1) * stride + taps for out, stride, taps in zip(after, inner, kernel, strict=False)
    )
    return Fold(
        pixels=pixels,
        steps=steps,
        top=window.pads[0],
        left=window.pads[1],
        rows=rows,
        columns=columns,
        window=Window(kernel=(kernel[0], kernel[1]), strides=(inner[0], inner[1])),
    )
