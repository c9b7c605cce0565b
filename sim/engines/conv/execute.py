"""The golden run of a program: every map that it writes."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.program import ConvProgram, ConvStep, LayerTensors
from hw.conv.driver.route import Route
from hw.conv.driver.workload import MapName
from sim.golden.conv.attributes import Attributes
from sim.golden.conv.formats import computed_offsets, raw_bytes, requantized
from sim.golden.conv.model import Deformation, accumulators

Int = NDArray[np.int64]
Int8 = NDArray[np.int8]


def execute(program: ConvProgram) -> dict[str, Int8]:
    """Run every step; returns the maps by the names of results, ``[C, H, W]``."""
    maps: dict[str, Int8] = dict(program.inputs)
    for step in program.steps:
        maps[step.result] = _run(step, program.route(step), maps, program.config)
    return {step.result: maps[step.result] for step in program.steps}


def sums(tensors: LayerTensors, x: Int8, config: ConvConfig, route: Route) -> Int:
    """Return a layer's sums in ``route``, equal to those of the gates: ``[Cout, oH, oW]``, bias included."""
    layer, bias = tensors.layer, tensors.parameters.bias
    if layer.offsets is Offsets.NONE:
        plain = accumulators(x, tensors.w, attributes(layer), zero=layer.zero)
        return (plain << route.sum_bits(config, layer)) + bias.reshape(-1, 1, 1)
    offset = tensors.offset if tensors.dot is None else _offsets(tensors, x)
    assert offset is not None
    deformation = Deformation(
        offset=offset,
        mask=tensors.mask,
        fraction_bits=config.fraction_bits,
        bound=layer.bound,
        square=layer.offsets is Offsets.SQUARE,
    )
    return accumulators(x, tensors.w, attributes(layer), deformation, zero=layer.zero, bias=bias)


def _offsets(tensors: LayerTensors, x: Int8) -> NDArray[np.int16]:
    """Return the offsets of a layer that computes them from its map, in the form of `Deformation`."""
    layer, dot = tensors.layer, tensors.dot
    assert dot is not None
    plain = accumulators(x, dot.w.reshape(*dot.w.shape, 1, 1), zero=layer.zero, bias=dot.bias)
    offset = computed_offsets(plain, dot.multiplier, dot.shift)
    return offset[0] if layer.offsets is Offsets.SQUARE else offset


def attributes(layer: ConvLayer) -> Attributes:
    """Return the attributes of a layer for the golden model."""
    return Attributes(
        strides=layer.strides,
        dilations=layer.dilations,
        pads=layer.pads,
        group=layer.group,
        offset_group=layer.offset_group,
    )


def _run(step: ConvStep, route: Route, maps: Mapping[str, Int8], config: ConvConfig) -> Int8:
    x = _part(maps, step.source)
    for tensors in step.layers:
        x = _results(tensors, x, config, route)
    leaving = step.rearrangement
    if leaving.shuffle:
        assert step.bypass is not None
        x = np.stack([_part(maps, step.bypass), x], axis=1).reshape(2 * len(x), *x.shape[1:])
    if leaving.double:
        x = x.repeat(2, axis=1).repeat(2, axis=2)
    return x


def _part(maps: Mapping[str, Int8], name: MapName) -> Int8:
    """Return a map, or one half of its channels."""
    x = maps[name.name]
    if name.part is None:
        return x
    half = len(x) // 2
    return x[name.part * half : (name.part + 1) * half]


def _results(tensors: LayerTensors, x: Int8, config: ConvConfig, route: Route) -> Int8:
    layer, parameters = tensors.layer, tensors.parameters
    total = sums(tensors, x, config, route)
    if layer.raw:
        return raw_bytes(total, parameters.shift.reshape(-1, 1, 1)).view(np.int8)
    return requantized(
        total, parameters.multiplier, parameters.shift, parameters.post, low=layer.low, high=layer.high
    )
