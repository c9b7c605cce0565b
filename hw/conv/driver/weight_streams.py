"""The streams of weights, beat by beat in the order of the loaders."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from amaranth.lib import data
from numpy.typing import NDArray

from hw.conv.config import TAP_SUM_BITS, ConvConfig
from hw.conv.core.depthwise.offset_dot import SUM_BITS
from hw.conv.core.layouts import Offsets
from hw.conv.core.packets import (
    RECORD_BITS,
    PacketHeader,
    Parameters,
    Record,
    TileHeader,
)
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import LayerKind
from hw.conv.driver.route import PointSide, TapSide
from hw.conv.driver.weights import WeightTile, packets
from hw.errors import InputError
from hw.launch import Bytes, Int8

Int = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelParameters:
    """The scale of sums, for each output channel: int64 ``[Cout]`` each."""

    bias: Int  #: In the scale of the sum of ``w * (x - zero)``.
    #: ``multiplier``, ``shift``, ``post``: see `sim.golden.conv.formats.requantized`.
    multiplier: Int
    shift: Int
    post: Int


@dataclass(frozen=True, kw_only=True, eq=False)
class DotTensors:
    """The 1 x 1 convolution that computes a layer's offsets."""

    w: Int8  #: int8 ``[2 * K, C]``, or ``[1, C]`` for a square offset: dy and dx of each tap.
    #: ``bias``, ``multiplier``, ``shift``: one int64 for each row of ``w``: an offset is the sum of ``w * (x
    #: - zero)`` and the bias, times the scale, rounded, within 16 bits.
    bias: Int
    multiplier: Int
    shift: Int


def tap_stream(
    config: ConvConfig,
    side: TapSide,
    form: MapForm,
    w: Int8,
    parameters: ChannelParameters,
    *,
    beat_bits: int,
    dot: DotTensors | None = None,
) -> Bytes:
    """Return the weights of a layer that is sampled, in the order of its loader.

    ``form``: of the map that is sampled. ``w``: int8 ``[C, 1, kH, kW]``. ``dot``: computes its offsets.

    Raises `InputError` for a bias that does not fit into the sums.
    """
    _check_bias(parameters.bias, TAP_SUM_BITS)
    lanes, buffer = form.lanes(config), side.buffer
    count = buffer.words * config.lanes
    taps = np.zeros((count, buffer.steps * config.taps if not buffer.strip else side.layer.taps), np.int8)
    if side.layer.kind is LayerKind.DEPTHWISE:
        taps[lanes, : side.layer.taps] = w.reshape(len(w), -1)
    cells = (buffer.words, config.lanes // config.cell_lanes, config.cell_lanes)
    contents = {
        Record.STRIPS: lambda: taps,
        # [word, cell, lane, step, tap] -> a record for each word, step and cell
        Record.TAPS: lambda: (
            taps.reshape(*cells, buffer.steps, config.taps)
            .transpose(0, 3, 1, 4, 2)
            .reshape(-1, config.taps * config.cell_lanes)
        ),
    }
    beats = []
    kinds = packets(config, side.layer, buffer)
    for kind, records in kinds:
        if kind is Record.PARAMETERS:
            given = _parameter_records(parameters, lanes, count)
        elif kind in (Record.DOT, Record.DOT_PARAMETERS):
            assert dot is not None
            given = _dot_records(config, side, dot, lanes, kind)
        else:
            given = _padded(_packed(contents[kind](), config.weight_bits), RECORD_BITS)
        ends = kind is kinds[-1][0]
        header = _fields(PacketHeader(), 1, kind=int(kind), ends=int(ends), records=records)
        beats += [_padded(header, beat_bits), _padded(given.reshape(1, -1), beat_bits)]
    return _bytes(np.concatenate([beat.reshape(-1) for beat in beats]))


def tile_stream(
    config: ConvConfig, side: PointSide, w: Int8, parameters: ChannelParameters, *, beat_bits: int
) -> Bytes:
    """Return the weights of a pointwise layer, or of samples, in the order of its loader for each block.

    ``w``: int8 ``[Cout, C / group, kH, kW]``. ``parameters``: of its output channels.  The array does not
    subtract the zero point of pixels: the bias includes it.

    Raises `InputError` for a bias that does not fit into the sums.
    """
    layer, lanes = side.layer, side.lanes
    bias = parameters.bias
    if layer.offsets is Offsets.NONE:
        bias = bias - layer.zero * w.sum(axis=(1, 2, 3), dtype=np.int64)
    _check_bias(bias, config.pointwise_bits)
    out_lanes = np.array(lanes.outputs)
    records = _parameter_records(
        replace(parameters, bias=bias),
        lanes.outputs,
        side.form.words(config) * config.lanes,
    )
    headers = _padded(_tile_headers(config, side.tiles), beat_bits)
    beats = []
    dense = np.zeros(0, np.int8)
    for n, tile in enumerate(side.tiles):
        beats.append(headers[n])
        if tile.first:
            first = tile.outputs * config.outputs
            own = np.flatnonzero((out_lanes >= first) & (out_lanes < first + config.outputs))
            dense = _dense(config, side, w, own, first)
            given = records[first : first + config.outputs]
            beats.append(_padded(given.reshape(1, -1), beat_bits).reshape(-1))
        part = slice(tile.inputs * config.inputs, (tile.inputs + 1) * config.inputs)
        raw = _packed(dense[tile.tap, :, part].reshape(1, -1), config.weight_bits)
        beats.append(_padded(raw, beat_bits).reshape(-1))
    return _bytes(np.concatenate(beats))


def _dot_records(config: ConvConfig, side: TapSide, dot: DotTensors, lanes: Any, kind: Record) -> Bytes:
    """Return weights, for each word and pass a record a cell: 8 lanes of one number, then of the other."""
    numbers = 2 * side.buffer.passes
    if kind is Record.DOT_PARAMETERS:
        bias = dot.bias - side.layer.zero * dot.w.sum(axis=1, dtype=np.int64)
        _check_sums(dot, side.layer.zero)
        given = ChannelParameters(
            bias=bias, multiplier=dot.multiplier, shift=dot.shift, post=np.zeros_like(bias)
        )
        return _parameter_records(given, np.arange(len(bias)), numbers)
    dense = np.zeros((numbers, side.buffer.words * config.lanes), np.int8)
    dense[: len(dot.w), lanes] = dot.w
    shape = (side.buffer.passes, 2, side.buffer.words, -1, config.cell_lanes)
    # [pass, number, word, cell, lane] -> a record for each word, pass and cell
    return _packed(dense.reshape(shape).transpose(2, 0, 3, 1, 4).reshape(-1, 2 * config.cell_lanes), 8)


def _check_bias(bias: Int, sum_bits: int) -> None:
    """Check that biases fit into the sums beside the products."""
    most = 1 << sum_bits - 2
    if np.abs(bias).max() >= most:
        raise InputError("bias", int(np.abs(bias).max()), f"below {most} in units of the sums")


def _check_sums(dot: DotTensors, zero: int) -> None:
    """Check that sums of offsets fit into their bits for every map."""
    w = dot.w.astype(np.int64)
    above, below = w.clip(min=0).sum(axis=1), w.clip(max=0).sum(axis=1)
    ends = (above * x + below * other + dot.bias for x, other in ((127, -128), (-128, 127)))
    most = max(int(np.abs(end - zero * w.sum(axis=1)).max()) for end in ends)
    if most >= 1 << SUM_BITS - 1:
        raise InputError("sum of offsets", most, f"below {1 << SUM_BITS - 1} for every map")


def _dense(config: ConvConfig, side: PointSide, w: Int8, outputs: Int, first: int) -> Int8:
    """Return the weights of PE lanes from ``first`` on, of all input lanes: ``[taps, PE, lanes]``."""
    lanes = side.lanes
    in_lanes = np.array(lanes.inputs)
    dense = np.zeros((lanes.taps, config.outputs, lanes.words * config.lanes), np.int8)
    inputs, members = len(in_lanes) // lanes.group, len(lanes.outputs) // lanes.group
    for channel in outputs:
        group = channel // members
        own = in_lanes[group * inputs : (group + 1) * inputs]
        dense[:, lanes.outputs[channel] - first, own] = w[channel].reshape(inputs, -1).T
    return dense


def _tile_headers(config: ConvConfig, tiles: tuple[WeightTile, ...]) -> Bytes:
    values = np.array(tiles, np.int64).T
    of = dict(zip(WeightTile._fields, values, strict=True))
    in_slices, out_slices = config.lanes // config.inputs, config.lanes // config.outputs
    return _fields(
        TileHeader(),
        len(tiles),
        kind=int(Record.TILE),
        parameters=of["first"],
        first=of["first"],
        last=of["last"],
        ends=of["ends"],
        digit=of["digit"],
        word=of["word"],
        slice=of["inputs"] % in_slices,
        out_word=of["outputs"] // out_slices,
        out_slice=of["outputs"] % out_slices,
    )


def _parameter_records(parameters: ChannelParameters, lanes: Any, count: int) -> Bytes:
    """Return a record for each of ``count`` lanes; those without a channel are zero."""
    values = {}
    for name in ("bias", "multiplier", "shift", "post"):
        values[name] = np.zeros(count, np.int64)
        values[name][lanes] = getattr(parameters, name)
    return _padded(_fields(Parameters(), count, **values), RECORD_BITS)


def _fields(layout: data.StructLayout, count: int, **values: Any) -> Bytes:
    """Pack ``count`` structures: ``[count, bytes]``."""
    bits = np.zeros((count, -(-layout.size // 8) * 8), np.uint8)
    for name, given in values.items():
        field = layout[name]
        numbers = np.broadcast_to(np.asarray(given, np.int64), (count,))
        bits[:, field.offset : field.offset + field.width] = (numbers[:, None] >> np.arange(field.width)) & 1
    return np.packbits(bits, axis=1, bitorder="little")


def _packed(weights: Int8, bits: int) -> Bytes:
    """Pack rows of weights, the first lowest."""
    if bits == 8:
        return np.ascontiguousarray(weights).view(np.uint8)
    whole = np.pad(weights, ((0, 0), (0, weights.shape[1] % 2))).view(np.uint8) & 15
    return (whole[:, 0::2] | whole[:, 1::2] << 4).astype(np.uint8)


def _padded(rows: Bytes, bits: int) -> Bytes:
    """Pad rows of bytes to whole multiples of ``bits``."""
    return np.pad(rows, ((0, 0), (0, -rows.shape[1] % (bits // 8))))


def _bytes(values: NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
