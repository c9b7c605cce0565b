"""Maps in blocks of pixels: a layer whose windows do not overlap becomes a 1 x 1 convolution of blocks."""

import numpy as np

from hw.conv.driver.table import Row
from hw.launch import Int8


def blocked_map(x: Int8, stride: int, pad: tuple[int, int]) -> Int8:
    """Return a map [C, H, W] with ``stride`` x ``stride`` pixels as one pixel, [S S C, H / S, W / S].

    The first block begins ``pad`` rows above and columns left of the map, where pixels are 0.
    """
    above, left = pad
    channels, *size = x.shape
    rows, columns = (-(-side // stride) for side in size)
    padded = np.zeros((channels, rows * stride, columns * stride), np.int8)
    inside = x[:, : rows * stride - above, : columns * stride - left]
    padded[:, above : above + inside.shape[1], left : left + inside.shape[2]] = inside
    blocks = padded.reshape(channels, rows, stride, columns, stride).transpose(2, 4, 0, 1, 3)
    return blocks.reshape(-1, rows, columns)


def blocked_weights(w: Int8, stride: int) -> Int8:
    """Return weights [M, C, K, K], K up to ``stride``, as those of a 1 x 1 convolution of a `blocked_map`."""
    outputs, channels, *kernel = w.shape
    block = np.zeros((outputs, channels, stride, stride), np.int8)
    block[:, :, : kernel[0], : kernel[1]] = w
    return block.transpose(0, 2, 3, 1).reshape(outputs, -1, 1, 1)


def in_blocks(row: Row) -> bool:
    """Return whether the host lays the map of a layer out in blocks: its windows do not overlap.

    The layer takes a word a block then, instead of a word a pixel with the three channels of a stem.
    """
    stride = row.stride[0]
    return (
        row.kind == "conv"
        and row.group == 1
        and row.stride == (stride, stride)
        and max(row.kernel) <= stride > 1
        and row.dilation == (1, 1)
        and row.out_size == (-(-row.rows // stride), -(-row.columns // stride))
        and max(row.pads[:2]) < stride
    )
