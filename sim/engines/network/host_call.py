"""A network's launch as the host library sees it: the model's inputs and outputs in its own shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from hw.launch import Buffers, Tensor
from hw.network.driver.region import constants_stay, read_outputs, region_of
from hw.network.driver.tensors import (
    element_type,
    elements_of_model,
    elements_of_value,
    model_inputs,
    model_outputs,
)
from hw.network.graph.network import Network, Value
from sim.engines.network.job import NetworkJob
from sim.engines.network.token_inputs import numbers_below, segments_of
from sim.run.host_call import HostCall, HostTensor, RealEntry, host_tensor

#: As `hw.network.graph.refs.quantize` does it.
_REALS = RealEntry(type="float32", lowest=-128, highest=127)
#: A stored element less the model's own of uint8.
_UNSIGNED = -128


def network_call(job: NetworkJob, *, fill: int) -> HostCall | None:
    """Describe a launch; ``fill``: bytes of the region that hold nothing.

    None where the program writes over constants: its region serves one launch.
    """
    network, program = job.network, job.program
    if not constants_stay(program):
        return None
    inputs, outputs = model_inputs(network), model_outputs(network)

    def write(elements: Sequence[Tensor]) -> Buffers:
        stored = {
            tensor.value: elements_of_value(array, tensor, network.values[tensor.value])
            for tensor, array in zip(inputs, elements, strict=True)
        }
        return {"memory": region_of(program, stored, fill=fill)}

    def read(buffers: Buffers) -> dict[str, Tensor]:
        found = read_outputs(program, buffers["memory"])
        return {
            tensor.name: elements_of_model(found[tensor.value], tensor, network.values[tensor.value])
            for tensor in outputs
        }

    return HostCall(inputs=tuple(_inputs(network)), outputs=tuple(_outputs(network)), write=write, read=read)


def _inputs(network: Network) -> Iterator[HostTensor]:
    segments = segments_of(network)
    for tensor in model_inputs(network):
        value = network.values[tensor.value]
        rows = numbers_below(network, value.name)
        packed = rows is not None and tensor.shape == (1, sum(segments))
        yield host_tensor(
            tensor.name,
            tensor.shape,
            element_type(replace(tensor, real=False), value),
            element_bytes=value.bits // 8,
            offset=_UNSIGNED * value.unsigned,
            limits=None if rows is None else (0, rows - 1),
            lengths=segments if packed else (),
            reals=_REALS if tensor.real else None,
            arrays=_arrays(value) if tensor.real else None,
        )


def _outputs(network: Network) -> Iterator[HostTensor]:
    for tensor in model_outputs(network):
        value = network.values[tensor.value]
        yield host_tensor(
            tensor.name,
            tensor.shape,
            element_type(replace(tensor, real=False), value),
            output=True,
            offset=_UNSIGNED * value.unsigned,
            reals=_REALS if tensor.real else None,
            arrays=_arrays(value) if tensor.real else None,
        )


def _arrays(value: Value) -> dict[str, Tensor]:
    zero = {"zero": np.asarray(value.zero)} if value.zero else {}
    return {"scale": np.asarray(value.scale)} | zero
