"""The layout of maps and offsets in memory."""

import numpy as np
from numpy.typing import NDArray

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.launch import Bytes, Int8


def map_words(config: ConvConfig, form: MapForm, tensor: Int8) -> Int8:
    """Return the words of a map ``[C, H, W]``: ``[H, W, words, L]``, zero in lanes without a channel."""
    _, rows, columns = tensor.shape
    lanes = np.zeros((rows, columns, form.words(config) * config.lanes), np.int8)
    lanes[..., form.lanes(config)] = tensor.transpose(1, 2, 0)
    return lanes.reshape(rows, columns, form.words(config), config.lanes)


def spread(config: ConvConfig, form: MapForm, tensor: Int8, *, split: bool = False) -> list[Int8]:
    """Spread a map ``[C, H, W]`` over the ports; returns each port's bytes.

    With ``split`` each row is part by part, otherwise each pixel.
    """
    words = map_words(config, form, tensor)
    rows, columns = words.shape[:2]
    shape = (rows, columns, form.parts, -1, config.ports, config.lanes // config.ports)
    # [row, column, part, word, port, lane] -> for each port the bytes of each part
    by_port = (
        words.reshape(shape).transpose(4, 0, 1, 2, 3, 5).reshape(config.ports, rows, columns, form.parts, -1)
    )
    if split:
        by_port = by_port.swapaxes(2, 3)
    return [by_port[port, ..., :units].reshape(-1).copy() for port, units in enumerate(form.units(config))]


def gathered(
    config: ConvConfig, form: MapForm, ports: list[Int8], size: tuple[int, int], *, split: bool = False
) -> Int8:
    """Read a map ``[C, H, W]`` of ``size`` back from the ports; the reverse of `spread`."""
    rows, columns = size
    share = config.lanes // config.ports
    by_port = np.zeros((config.ports, rows, columns, form.parts, form.part_words(config) * share), np.int8)
    for port, units in enumerate(form.units(config)):
        if split:
            given = ports[port].reshape(rows, form.parts, columns, units).swapaxes(1, 2)
        else:
            given = ports[port].reshape(rows, columns, form.parts, units)
        by_port[port, ..., :units] = given
    shape = (config.ports, rows, columns, form.parts, -1, share)
    lanes = by_port.reshape(shape).transpose(1, 2, 3, 4, 0, 5).reshape(rows, columns, -1)
    return np.ascontiguousarray(lanes[..., form.lanes(config)].transpose(2, 0, 1))


def offset_entries(
    config: ConvConfig, layer: ConvLayer, offset: NDArray[np.int16], mask: NDArray[np.uint8] | None = None
) -> Bytes:
    """Return the bytes of a layer's offsets in memory.

    ``offset``: ``[2 * offset_group * K, oH, oW]`` as of ONNX, or ``[oH, oW]`` if square. ``mask``:
    ``[offset_group * K, oH, oW]`` if the layer is masked.

    They are little endian: for each pixel, offset group and step (dy, dx and mask) of each tap of the step.
    """
    if layer.offsets is Offsets.SQUARE:
        return offset.astype("<i2").reshape(-1).view(np.uint8)
    groups, taps = layer.offset_group, layer.taps
    per_step = 1 if layer.kind is LayerKind.SAMPLES else config.taps
    whole = -(-taps // per_step) * per_step
    rows, columns = layer.out_size
    entries = np.zeros((rows, columns, groups, whole, 3 if layer.masked else 2), "<i2")
    entries[..., :taps, :2] = offset.reshape(groups, taps, 2, rows, columns).transpose(3, 4, 0, 1, 2)
    if mask is not None:
        entries[..., :taps, 2] = mask.reshape(groups, taps, rows, columns).transpose(2, 3, 0, 1)
    return entries.reshape(-1).view(np.uint8)
