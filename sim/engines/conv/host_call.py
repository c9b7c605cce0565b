"""A convolution launch as the host library sees it: a layer's tensors, or the maps of a table of layers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hw.board import Board
from hw.conv.config import MASK_BITS, OFFSET_BITS, ConvConfig
from hw.conv.driver.program import ConvProgram, LayerTensors
from hw.conv.driver.tensors import RESULT, SUMS, QuantizedLayer
from hw.launch import Buffers, Tensor
from sim.engines.conv.job import TOTAL, LayerJob, NetworkJob
from sim.run.host_call import HostCall, HostTensor, RealEntry, host_tensor

#: Inputs of a layer beside its map.
_OFFSET, _MASK = "offset", "mask"


def conv_call(job: LayerJob | NetworkJob, config: ConvConfig, board: Board) -> HostCall:
    """Describe a launch; weights, scales and sizes stay."""
    program = job.program.at(config.port_width(board.memory.port_data_width))
    inputs = tuple(_inputs(job))
    names = [tensor.entry.name for tensor in inputs]

    def write(elements: Sequence[Tensor]) -> Buffers:
        other = _with_elements(program, dict(zip(names, elements, strict=True)))
        maps = {f"maps{port}": content for port, content in enumerate(other.arenas())}
        return {**maps, "offsets": other.offsets}

    def read(buffers: Buffers) -> dict[str, Tensor]:
        arenas = [buffers[f"maps{port}"] for port in range(config.ports)]
        maps: dict[str, Tensor] = {step.result: program.read(step.result, arenas) for step in program.steps}
        if isinstance(job, LayerJob) and job.bytes:
            maps[TOTAL] = np.stack([maps[f"{SUMS}{n}"] for n in range(job.bytes)], axis=-1)
        return maps

    before = {f"maps{port}": content for port, content in enumerate(program.arenas())}
    shapes = {name: each.shape for name, each in read(before).items()}
    return HostCall(inputs=inputs, outputs=tuple(_outputs(job, shapes)), write=write, read=read)


def _with_elements(program: ConvProgram, elements: dict[str, Tensor]) -> ConvProgram:
    """Return the program of other maps, offsets and masks."""

    def other(layer: LayerTensors) -> LayerTensors:
        return replace(
            layer,
            offset=elements.get(_OFFSET, layer.offset),
            mask=elements[_MASK].view(np.uint8) if _MASK in elements else layer.mask,
        )

    steps = program.steps
    if _OFFSET in elements:
        steps = tuple(replace(step, layers=tuple(map(other, step.layers))) for step in steps)
    return replace(program, inputs={name: elements[name] for name in program.inputs}, steps=steps)


def _inputs(job: LayerJob | NetworkJob) -> Iterator[HostTensor]:
    if isinstance(job, NetworkJob):
        for name, tensor in job.program.inputs.items():
            yield host_tensor(name, tensor.shape, "int8")
        return
    given, layer = job.given, job.given.layer
    zero = {"zero": layer.layer.zero} if layer.layer.zero else {}
    reals = RealEntry(type="own", lowest=-128, highest=127)
    yield host_tensor("x", given.x.shape, "int8", reals=reals, arrays={"scale": given.x_scale, **zero})
    if layer.offset is not None:
        yield _offset(given, layer.offset.shape)
    if layer.mask is not None:
        # 1 becomes 255 / 256.
        reals = RealEntry(type="float64", half_up=True, lowest=0, highest=255, legal=(0.0, 1.0))
        yield host_tensor(_MASK, layer.mask.shape, "uint8", reals=reals, arrays={"scale": 2.0**-MASK_BITS})


def _offset(given: QuantizedLayer, shape: tuple[int, ...]) -> HostTensor:
    """Return the offsets: clamped to a bound, or refused beyond int16."""
    fraction, most = given.config.fraction_bits, 2 ** (OFFSET_BITS - 1) - 1
    step = 2.0**-fraction
    bound = given.layer.layer.bound
    low, high = (-most - 1, most) if bound is None else (-bound << fraction, bound << fraction)
    reals = RealEntry(
        type="float64",
        half_up=True,
        lowest=low,
        highest=high,
        legal=(low * step, high * step) if bound is None else None,
    )
    return host_tensor(_OFFSET, shape, "int16", reals=reals, arrays={"scale": step})


def _outputs(job: LayerJob | NetworkJob, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[HostTensor]:
    if isinstance(job, NetworkJob):
        for name, shape in shapes.items():
            yield host_tensor(name, shape, "int8", output=True)
        return
    zero = {"zero": job.y_zero} if job.y_zero else {}
    reals = RealEntry(type="float64", lowest=-128, highest=127)
    yield host_tensor(
        RESULT, shapes[RESULT], "int8", output=True, reals=reals, arrays={"scale": job.y_scale, **zero}
    )
    if job.bytes:
        limits = (-(1 << 8 * job.bytes - 1), (1 << 8 * job.bytes - 1) - 1)
        yield host_tensor(TOTAL, shapes[RESULT], "int64", output=True, element_bytes=job.bytes, limits=limits)
