"""A quantized network beside the float model it was made of, tensor by tensor, and beside a reference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from hw.errors import InputError
from hw.launch import Int8, Tensors
from hw.network.driver.tensors import model_inputs, stored_inputs
from hw.network.graph.network import Network, Operator, Shape, Value
from hw.network.graph.quantize import IR_VERSION
from sim.golden.network import execute

_SUFFIXES = ("_quantized", "_QuantizeLinear_Output", "_QuantizeLinear_Input")
#: Operators that a quantized model joins to the one before.
_JOINED = ("Relu", "Clip")


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A tensor's error against the float model."""

    operator: str
    kind: str
    tensor: str  #: In the float model.
    decibels: float  #: Signal to noise; infinite where nothing differs.
    largest: float  #: Largest error, in steps of the tensor's scale.


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first tensor that differs from a reference."""

    operator: str
    tensor: str
    differ: int  #: Elements.
    elements: int
    largest: int  #: Largest distance, in steps of the tensor's scale.
    at: tuple[int, ...]  #: Row, column and channel of the first element that differs.


def signals(model: bytes, network: Network, exact: bytes, tensors: Tensors) -> list[Signal]:
    """Return the error of each operator's result whose tensor the float model ``exact`` has, in order.

    ``tensors``: for each input samples along the first dimension. Noise and signal are summed over all.
    """
    names = float_names(model, network, exact)
    wanted = list(dict.fromkeys(names.values()))
    noise, power, largest = (dict.fromkeys(names, 0.0) for _ in range(3))
    run = _runner(exact, wanted)
    for sample in _samples(network, tensors):
        values = execute(network, stored_inputs(network, sample))
        floats = dict(zip(wanted, run(sample), strict=True))
        for name, tensor in names.items():
            value = network.values[name]
            real = in_order(floats[tensor], value.shape).astype(np.float64)
            error = value.scale * (values[name].astype(np.float64) - value.zero) - real
            noise[name] += float((error**2).sum())
            power[name] += float((real**2).sum())
            largest[name] = max(largest[name], float(np.abs(error).max()) / value.scale)
    return [
        Signal(
            operator=operator.name,
            kind=operator.kind,
            tensor=names[operator.output],
            decibels=_decibels(power[operator.output], noise[operator.output]),
            largest=largest[operator.output],
        )
        for operator in network.operators
        if operator.output in names
    ]


def first_difference(
    model: bytes, network: Network, tensors: Tensors, reference: Tensors
) -> Difference | None:
    """Return the first operator whose result is not that of ``reference``; None without one.

    ``tensors``: one sample of each input. ``reference``: arrays by a tensor's name in the quantized model, or
    in the float model.  Integers are compared as they are, real numbers by the steps next to them.

    Raises `InputError` for a name that no operator has, and for another number of elements.
    """
    values = execute(network, stored_inputs(network, tensors))
    plain = _stripped(model, network)
    known = {name for operator in network.operators for name in (operator.output, plain[operator.output])}
    for name in reference:
        if name not in known:
            raise InputError("tensor of the reference", name, "a result of the model", known=sorted(known))
    for operator in network.operators:
        for name in (operator.output, plain[operator.output]):
            if name in reference:
                found = _difference(operator, name, values[operator.output], network, reference[name])
                if found is not None:
                    return found
    return None


def float_names(model: bytes, network: Network, exact: bytes) -> dict[str, str]:
    """Return the float model's tensor behind each operator's result, by the value's name.

    A result that is stored behind a Relu or Clip is that operator's tensor there.
    """
    graph = onnx.load_model_from_string(exact).graph
    made = {name for node in graph.node for name in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    plain = _stripped(model, network)
    stored = {*plain.values()}
    found = {}
    for operator in network.operators:
        name = plain[operator.output]
        if name not in made:
            continue
        while len(some := readers.get(name, [])) == 1 and some[0].op_type in _JOINED:
            if some[0].output[0] in stored:
                break
            name = some[0].output[0]
        found[operator.output] = name
    return found


def in_order(array: NDArray[Any], shape: Shape) -> NDArray[Any]:
    """Return an array of the model's own order of dimensions as height, width, channels.

    Raises `InputError` when it has another number of elements.
    """
    height, width, channels = shape
    if array.size != math.prod(shape):
        raise InputError("shape of a tensor", array.shape, f"{height} x {width} x {channels} elements")
    if array.shape[-3:] == shape and array.shape[-3:] != (channels, height, width):
        return array.reshape(shape)
    return array.reshape(channels, height, width).transpose(1, 2, 0)


def _stripped(model: bytes, network: Network) -> dict[str, str]:
    """Return the tensor that each value stores, by the value's name.

    It is the operand of a QuantizeLinear, or has the value's name without the quantizer's suffix.
    """
    nodes = onnx.load_model_from_string(model).graph.node
    found = {node.output[0]: node.input[0] for node in nodes if node.op_type == "QuantizeLinear"}
    for name in network.values:
        tensor = found.get(name, name)
        suffix = next((each for each in _SUFFIXES if tensor.endswith(each)), "")
        found[name] = tensor.removesuffix(suffix)
    return found


def _runner(exact: bytes, wanted: Sequence[str]) -> Any:
    """Return a function that runs the float model and returns these tensors."""
    import onnxruntime

    proto = onnx.load_model_from_string(exact)
    proto.ir_version = min(proto.ir_version, IR_VERSION)
    del proto.graph.output[:]
    for name in wanted:
        proto.graph.output.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return lambda sample: session.run(
        list(wanted), {name: np.asarray(a, np.float32) for name, a in sample.items()}
    )


def _samples(network: Network, tensors: Tensors) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the inputs of one run after the other."""
    counts = {name: len(array) for name, array in tensors.items()}
    if len(set(counts.values())) != 1 or 0 in counts.values():
        raise InputError("samples of the inputs", counts, "one number, at least 1, for all inputs")
    names = {each.name for each in model_inputs(network)}
    if missing := names - tensors.keys():
        raise InputError("inputs", sorted(tensors), f"with an array {min(missing)!r}")
    for number in range(next(iter(counts.values()))):
        yield {name: np.asarray(array)[number : number + 1] for name, array in tensors.items()}


def _difference(operator: Operator, name: str, mine: Int8, network: Network, given: Any) -> Difference | None:
    value, array = network.values[operator.output], np.asarray(given)
    theirs = in_order(_integers(array, value), value.shape)
    apart = np.abs(mine.astype(np.int64) - theirs)
    if not apart.any():
        return None
    first = np.unravel_index(int(np.argmax(apart > 0)), apart.shape)
    return Difference(
        operator=operator.name,
        tensor=name,
        differ=int((apart > 0).sum()),
        elements=apart.size,
        largest=int(apart.max()),
        at=(int(first[0]), int(first[1]), int(first[2])),
    )


def _integers(array: NDArray[Any], value: Value) -> NDArray[np.int64]:
    """Return a reference's elements as the network stores them."""
    if array.dtype.kind in "iu":
        return array.astype(np.int64) - 128 * (array.dtype == np.uint8)
    if not np.isfinite(array).all():
        raise InputError(f"reference of {value.name!r}", "NaN or infinity", "finite numbers")
    steps = np.rint(array.astype(np.float32) / np.float32(value.scale)).astype(np.float64)
    return np.clip(steps + value.zero, -128, 127).astype(np.int64)


def _decibels(power: float, noise: float) -> float:
    return math.inf if noise == 0 else 10 * math.log10(power / noise) if power else -math.inf
