"""A layer from the user's tensors, in the names and orders of ONNX's Conv and DeformConv."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hw.conv.config import MASK_BITS, TAP_SUM_BITS, ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.formats import (
    channel_scales,
    check_weights,
    quantized_bias,
    quantized_map,
    quantized_mask,
    quantized_offsets,
    quantized_weights,
)
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.program import ConvProgram, ConvStep, LayerTensors
from hw.conv.driver.route import Route
from hw.conv.driver.weight_streams import ChannelParameters
from hw.conv.driver.workload import MapName
from hw.errors import InputError, check_one_of
from hw.launch import Tensor

#: Tensors of a layer; attributes are arrays of whole numbers.
TENSORS = ("x", "w", "offset", "mask", "bias", "x_scale", "x_zero", "w_scale", "y_scale", "y_zero")
ATTRIBUTES = ("group", "offset_group", "pads", "strides", "dilations", "bound", "accumulators")
#: Name of a layer's result, and of the maps of the bytes of its sums.
RESULT, SUMS = "y", "acc_byte_"


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantizedLayer:
    """A quantized layer, without the scale of its results."""

    config: ConvConfig
    x: NDArray[np.int8]
    x_scale: float  #: Real value of a step of x.
    layer: LayerTensors  #: Its parameters hold only the bias.
    unit: NDArray[np.float64]  #: For each output channel the real value of 1 in ``w (x - x_zero)``.
    #: Fraction bits of the sums: of samples and masks, none where samples are pixels.
    sum_bits: int
    #: Fraction bits that the gates add on routes where no sample has a fraction.
    extra_bits: int
    #: Scale and zero point of the result; None: from its range.
    result_scale: tuple[float, int] | None
    accumulators: bool  #: The sums are asked for.

    @property
    def route(self) -> Route:
        """The layer's route through the units."""
        program = self._program((_step(self.layer),))
        return program.route(program.steps[0])

    @property
    def sum_unit(self) -> NDArray[np.float64]:
        """For each output channel the real value of 1 in the gates' sums."""
        return self.unit / 2.0 ** (self.sum_bits + self.extra_bits)

    @property
    def sum_bytes(self) -> int:
        """Bytes of the sums that leave; 0 if they are not asked for."""
        if not self.accumulators:
            return 0
        width = _sum_width(self.layer, self.sum_bits + self.extra_bits)
        return -(-(width - self.extra_bits) // 8)

    def program(self, y_scale: float, y_zero: int) -> ConvProgram:
        """Return the launch: the layer, then the layer again for each byte of its sums."""
        outputs, shape = len(self.layer.w), self.layer.layer
        multiplier, shift = channel_scales(self.sum_unit / y_scale)
        parameters = replace(
            self.layer.parameters,
            multiplier=multiplier,
            shift=shift,
            post=np.full(outputs, y_zero, np.int64),
        )
        steps = [_step(replace(self.layer, parameters=parameters))]
        for n in range(self.sum_bytes):
            shifts = np.full(outputs, 8 * n + self.extra_bits, np.int64)
            of_byte = replace(self.layer.parameters, shift=shifts)
            raw = replace(self.layer, layer=replace(shape, raw=True), parameters=of_byte)
            steps.append(replace(_step(raw), name=f"sums {n}", result=f"{SUMS}{n}"))
        return self._program(tuple(steps))

    def _program(self, steps: tuple[ConvStep, ...]) -> ConvProgram:
        return ConvProgram(config=self.config, inputs={"x": self.x}, steps=steps)


def read_tensors(tensors: Mapping[str, Tensor], config: ConvConfig) -> QuantizedLayer:
    """Check and quantize a layer.

    ``tensors``: ``x [C, H, W]`` and ``w [Cout, C / group, kH, kW]``, int8 or real.  ``offset`` is in
    real pixels or in int16 units of 2^-F pixels; its shape is ONNX's, or ``[oH, oW]`` for `Offsets.SQUARE`.
    ``mask`` is real, from 0 to 1, or uint8 in units of 1/256.  ``bias [Cout]`` is real, or integers in units
    of ``w (x - x_zero)``.  For int8, ``x_scale`` and ``w_scale [Cout]`` are 1 by default, and ``x_zero`` is
    0; ``y_scale`` and ``y_zero`` follow from the sums.  `ATTRIBUTES` are those of ONNX.  ``bound`` clamps
    offsets.  ``accumulators`` of 0 leaves the sums out.

    Raises `InputError` for the first tensor that is wrong, or that the configuration cannot do.
    """
    for name in tensors:
        check_one_of("tensor name", name, (*TENSORS, *ATTRIBUTES))
    for name in ("x", "w"):
        if name not in tensors:
            raise InputError(
                "tensors", ", ".join(tensors) or "none", f"x and w, or layers by --network; {name} is missing"
            )
    x, x_scale, zero = _map(tensors)
    w, w_scale = _weights(tensors, config)
    offset, mask = _offsets(tensors, config)
    shape = _shape(tensors, x, w, offset, mask, zero)
    unit = x_scale * w_scale
    outputs = len(w)
    neutral = ChannelParameters(
        bias=np.zeros(outputs, np.int64),
        multiplier=np.ones(outputs, np.int64),
        shift=np.zeros(outputs, np.int64),
        post=np.zeros(outputs, np.int64),
    )
    sum_bits = 0 if offset is None else 2 * config.fraction_bits + (MASK_BITS if mask is not None else 0)
    found = QuantizedLayer(
        config=config,
        x=x,
        x_scale=x_scale,
        layer=LayerTensors(layer=shape, w=w, parameters=neutral, offset=offset, mask=mask),
        unit=unit,
        sum_bits=sum_bits,
        extra_bits=0,
        result_scale=_result_scale(tensors),
        accumulators=bool(_numbers(tensors, "accumulators", (1,), 1, 0, 1)[0]),
    )
    extra_bits = found.route.sum_bits(config, shape) if offset is None else 0
    bias = _bias(tensors, outputs, unit, sum_bits) << extra_bits
    layer = replace(found.layer, parameters=replace(neutral, bias=bias))
    return replace(found, layer=layer, extra_bits=extra_bits)


def joined_sums(maps: Mapping[str, NDArray[np.int8]], count: int) -> NDArray[np.int64]:
    """Join the ``count`` bytes of sums that a launch wrote; the last byte has the sign."""
    total = maps[f"{SUMS}{count - 1}"].astype(np.int64)
    for n in reversed(range(count - 1)):
        total = (total << 8) | maps[f"{SUMS}{n}"].view(np.uint8)
    return total


def _step(layer: LayerTensors) -> ConvStep:
    return ConvStep(name="layer", layers=(layer,), source=MapName(name="x"), result=RESULT)


def _sum_width(layer: LayerTensors, bits: int) -> int:
    """Count the bits of the largest sum over all maps, with its sign."""
    zero = layer.layer.zero
    weight = int(np.abs(layer.w.astype(np.int64)).reshape(len(layer.w), -1).sum(axis=1).max())
    largest = max(127 - zero, 128 + zero) * weight << bits
    return (largest + int(np.abs(layer.parameters.bias).max())).bit_length() + 1


def _map(tensors: Mapping[str, Tensor]) -> tuple[NDArray[np.int8], float, int]:
    x = tensors["x"]
    if x.ndim == 4 and len(x) == 1:
        x = x[0]
    if x.ndim == 4 and len(x) > 1:
        raise InputError("shape of x", x.shape, "[C, H, W]: one map a launch, not a batch")
    if x.ndim == 2 and x.size:
        raise InputError(
            "shape of x", x.shape, "[C, H, W]; of one dimension, [C, 1, W], and w's kernel [1, kW]"
        )
    if x.ndim != 3 or not x.size:
        raise InputError("shape of x", tensors["x"].shape, "[C, H, W], not empty")
    if x.dtype == np.int8:
        scale = _number(tensors, "x_scale", 1.0)
        return x, scale, int(_numbers(tensors, "x_zero", (1,), 0, -128, 127)[0])
    if x.dtype == np.uint8:
        advice = "int8 or a real type; of uint8 subtract 128, from x and from x_zero, which changes no result"
        raise InputError("type of x", x.dtype.name, advice)
    if x.dtype.kind != "f":
        raise InputError("type of x", x.dtype.name, "int8 or a real type")
    for name in ("x_scale", "x_zero"):
        if name in tensors:
            raise InputError(name, tensors[name].tolist(), "left out for a real x, which is quantized here")
    return quantized_map(x)


def _weights(
    tensors: Mapping[str, Tensor], config: ConvConfig
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    w = tensors["w"]
    if w.ndim != 4 or not w.size:
        raise InputError("shape of w", w.shape, "[Cout, C / group, kH, kW], not empty")
    if w.dtype == np.int8:
        check_weights(w, config.weight_bits)
        scale = np.asarray(tensors.get("w_scale", np.ones(len(w))), np.float64).reshape(-1)
        if scale.shape not in ((1,), (len(w),)) or not (np.isfinite(scale) & (scale > 0)).all():
            raise InputError("w_scale", scale.tolist(), f"{len(w)} numbers above 0, or one")
        return w, np.broadcast_to(scale, (len(w),)).copy()
    if w.dtype == np.uint8:
        advice = "int8 or a real type; weights are symmetric: of uint8 subtract the zero point, 128"
        raise InputError("type of w", w.dtype.name, advice)
    if w.dtype.kind != "f":
        raise InputError("type of w", w.dtype.name, "int8 or a real type")
    if "w_scale" in tensors:
        raise InputError("w_scale", "given", "left out for a real w, which is quantized here")
    return quantized_weights(w, config.weight_bits)


def _offsets(
    tensors: Mapping[str, Tensor], config: ConvConfig
) -> tuple[NDArray[np.int16] | None, NDArray[np.uint8] | None]:
    offset, mask = tensors.get("offset"), tensors.get("mask")
    if offset is None:
        if mask is not None:
            raise InputError("mask", mask.shape, "left out without an offset")
        return None, None
    if offset.ndim == 4 and len(offset) == 1:
        offset = offset[0]
    bound = _bound(tensors)
    if offset.dtype.kind == "f":
        offset = quantized_offsets(offset, config.fraction_bits, bound)
    elif offset.dtype != np.int16:
        raise InputError("type of offset", offset.dtype.name, "int16 or a real type")
    if mask is not None:
        if mask.ndim == 4 and len(mask) == 1:
            mask = mask[0]
        if mask.dtype.kind == "f":
            mask = quantized_mask(mask)
        elif mask.dtype != np.uint8:
            raise InputError("type of mask", mask.dtype.name, "uint8 or a real type")
    return offset, mask


def _bound(tensors: Mapping[str, Tensor]) -> int | None:
    return int(_numbers(tensors, "bound", (1,), 0, 0, 1 << 12)[0]) if "bound" in tensors else None


def _shape(
    tensors: Mapping[str, Tensor],
    x: NDArray[np.int8],
    w: NDArray[np.int8],
    offset: NDArray[np.int16] | None,
    mask: NDArray[np.uint8] | None,
    zero: int,
) -> ConvLayer:
    """Return the layer, after checking the shapes of all tensors."""
    kernel = (w.shape[2], w.shape[3])
    square = offset is not None and offset.ndim == 2
    kind = Offsets.NONE if offset is None else Offsets.SQUARE if square else Offsets.FREE
    pair = {name: _numbers(tensors, name, (2,), 1, 1, 63) for name in ("strides", "dilations")}
    pads = _numbers(tensors, "pads", (4,), 0, 0, 127)
    layer = ConvLayer(
        channels=len(x),
        rows=x.shape[1],
        columns=x.shape[2],
        outputs=len(w),
        kernel=kernel,
        strides=(pair["strides"][0], pair["strides"][1]),
        dilations=(pair["dilations"][0], pair["dilations"][1]),
        pads=(pads[0], pads[1], pads[2], pads[3]),
        group=_numbers(tensors, "group", (1,), 1, 1, 1 << 14)[0],
        offset_group=_numbers(tensors, "offset_group", (1,), 1, 1, 1 << 14)[0],
        offsets=kind,
        bound=_bound(tensors),
        masked=mask is not None,
        zero=zero,
    )
    if w.shape[1] * layer.group != layer.channels:
        raise InputError("shape of w", w.shape, f"of {layer.channels} / {layer.group} input channels")
    groups, taps = layer.offset_group, layer.taps
    shapes = {"offset": layer.out_size if square else (2 * groups * taps, *layer.out_size)}
    shapes["mask"] = (groups * taps, *layer.out_size)
    for name, tensor in (("offset", offset), ("mask", mask)):
        if tensor is not None and tensor.shape != shapes[name]:
            raise InputError(f"shape of {name}", tensor.shape, str(shapes[name]))
    return layer


def _bias(
    tensors: Mapping[str, Tensor], outputs: int, unit: NDArray[np.float64], bits: int
) -> NDArray[np.int64]:
    """Return the bias in units of 2^-``bits`` of ``w (x - x_zero)``."""
    bias = tensors.get("bias")
    if bias is None:
        return np.zeros(outputs, np.int64)
    if bias.shape != (outputs,):
        raise InputError("shape of bias", bias.shape, f"({outputs},)")
    if bias.dtype.kind in "iu":
        # Checked before the shift, which may wrap; narrower sums are checked in the layout of weights.
        most = 1 << TAP_SUM_BITS - 2 - bits
        for extreme in (int(bias.min()), int(bias.max())):
            if abs(extreme) >= most:
                raise InputError("bias", extreme, f"below {most} in units of w (x - x_zero), of either sign")
        return bias.astype(np.int64) << bits
    if bias.dtype.kind != "f":
        raise InputError("type of bias", bias.dtype.name, "whole or real")
    return quantized_bias(bias, unit / 2.0**bits)


def _result_scale(tensors: Mapping[str, Tensor]) -> tuple[float, int] | None:
    """Read scale and zero point of the result, if they are given."""
    if "y_scale" not in tensors:
        return None
    zero = int(_numbers(tensors, "y_zero", (1,), 0, -128, 127)[0])
    return _number(tensors, "y_scale", 1.0), zero


def _number(tensors: Mapping[str, Tensor], name: str, default: float) -> float:
    value = np.asarray(tensors.get(name, default), np.float64).reshape(-1)
    if value.shape != (1,) or not (np.isfinite(value[0]) and value[0] > 0):
        raise InputError(name, value.tolist(), "a number above 0")
    return float(value[0])


def _numbers(
    tensors: Mapping[str, Tensor], name: str, count: tuple[int], default: int, low: int, high: int
) -> list[int]:
    """Read integers; a single one applies to all."""
    given = np.asarray(tensors.get(name, default)).reshape(-1)
    if given.dtype.kind not in "iub" or given.size not in (1, count[0]):
        raise InputError(name, given.tolist(), f"{count[0]} whole numbers")
    values = [int(value) for value in np.broadcast_to(given, count)]
    for value in values:
        if not low <= value <= high:
            raise InputError(name, values, f"from {low} to {high}")
    return values
