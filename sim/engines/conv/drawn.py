"""Drawn tensors for a launch without tensors, and layers of other tools as launches."""

from typing import Any

import numpy as np

from hw.conv.config import SIDE_BITS, ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.program import ConvProgram, ConvStep, LayerTensors
from hw.conv.driver.seeded import SeededTensors
from hw.conv.driver.workload import ConvJob, ConvWorkload, MapName
from hw.errors import InputError
from hw.launch import Int8
from sim.workloads.layers import Convolution, Layer, Product

_MOST_SIDE = 2**SIDE_BITS - 1


def drawn_program(workload: ConvWorkload, config: ConvConfig, *, seed: int) -> ConvProgram:
    """Draw maps, weights and parameters of jobs, each with a map of its own.

    Raises `InputError` for a job whose tensors depend on other jobs, or a layer with offsets.
    """
    if workload.maps:
        raise InputError("maps", len(workload.maps), "left out: every job has drawn maps of its own")
    seeded = SeededTensors(config, seed)
    inputs: dict[str, Int8] = {}
    steps = []
    for number, job in enumerate(workload.jobs):
        if job != ConvJob(layers=job.layers, most_pixels=job.most_pixels):
            raise InputError(
                f"jobs.{number}", "rearranged", "of layers alone: tensors are drawn for each job"
            )
        first, source = job.layers[0], f"(input of job {number})"
        inputs[source] = seeded.map(first.channels, (first.rows, first.columns))
        steps.append(
            ConvStep(
                name=f"job {number}",
                layers=tuple(_drawn(seeded, layer) for layer in job.layers),
                source=MapName(name=source),
                result=f"job {number}",
                most_pixels=job.most_pixels,
            )
        )
    return ConvProgram(config=config, inputs=inputs, steps=tuple(steps))


def _drawn(seeded: SeededTensors, layer: ConvLayer) -> LayerTensors:
    if layer.offsets is not Offsets.NONE:
        raise InputError("offsets", layer.offsets.name, "NONE: tensors with offsets are files")
    shape = (layer.outputs, layer.channels // layer.group, *layer.kernel)
    return seeded.layer(layer, seeded.weights(shape))


def layer_shape(layer: Layer) -> dict[str, Any]:
    """Return a `ConvWorkload` of one layer as plain values.

    A matrix product is a pointwise layer, its rows the pixels of a map.

    Raises `InputError` for other work, and sizes beyond the engine's.
    """
    work = layer.work
    if isinstance(work, Product):
        rows, columns = _pixels(work.rows)
        work = Convolution(
            channels=work.inner, rows=rows, columns=columns, outputs=work.columns, kernel=(1, 1)
        )
    if not isinstance(work, Convolution):
        raise InputError("kind", getattr(work, "reason", "attention"), "a convolution or a matrix product")
    fields: dict[str, Any] = vars(work)
    ConvLayer(**fields)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
    return {"jobs": [{"layers": [plain]}]}


def _pixels(count: int) -> tuple[int, int]:
    """Return rows and columns of a map of so many pixels: as few rows as its sides allow."""
    for rows in range(-(-count // _MOST_SIDE), min(count, _MOST_SIDE) + 1):
        if count % rows == 0:
            return rows, count // rows
    legal = f"a product of two numbers of at most {_MOST_SIDE}, the sides of a map"
    raise InputError("rows of the product", count, legal)


def as_tensor(workload: ConvWorkload) -> Any:
    """Put a workload among tensors."""
    found = np.empty((), object)
    found[()] = workload
    return found
