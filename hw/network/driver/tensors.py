"""The model's inputs and outputs: the user's arrays to stored elements, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError, check_range
from hw.launch import Tensors
from hw.network.graph.network import Gather, ModelTensor, Network, Value
from hw.network.graph.refs import NHWC, VECTOR, quantize


def model_inputs(network: Network) -> tuple[ModelTensor, ...]:
    """Return the model's inputs; those of a network without a model are its values, real and NHWC."""
    return network.model_inputs or _plain(network, network.inputs)


def model_outputs(network: Network) -> tuple[ModelTensor, ...]:
    """Return the model's outputs, likewise."""
    return network.model_outputs or _plain(network, network.outputs)


def element_type(tensor: ModelTensor, value: Value) -> str:
    """Return the type of the user's elements.

    >>> tensor = ModelTensor(name="x", value="x", shape=(1, 4), order="NC", real=False)
    >>> element_type(tensor, Value(name="x", shape=(1, 1, 4), scale=0.5, zero=0, unsigned=True))
    'uint8'
    """
    if value.bits > 16:
        return "int64"
    return "float32" if tensor.real else "uint8" if value.unsigned else f"int{value.bits}"


def stored_inputs(network: Network, tensors: Tensors) -> dict[str, NDArray[Any]]:
    """Return the stored elements of each input, of shape ``(height, width, channels)``, by the value's name.

    ``tensors``: by the model's names, in the model's own shape, the batch of 1 or none.  Real numbers are
    divided by the scale and rounded; integers are the model's own.

    Raises `InputError` for names, shapes and types that are not the model's, for NaN or infinity, and for
    numbers of rows that a table does not have.
    """
    inputs = model_inputs(network)
    known = list(dict.fromkeys(tensor.name for tensor in inputs))
    for name in tensors:
        if name not in known:
            raise InputError("input", name, f"an input of the model: {', '.join(known)}", known=known)
    found = {each.value: _stored(each, network.values[each.value], tensors) for each in inputs}
    for operator in network.operators:
        if isinstance(operator, Gather) and operator.inputs[0] in found:
            numbers, rows = found[operator.inputs[0]], len(operator.table)
            for number in (numbers.min(), numbers.max()):
                check_range(f"number in input {operator.inputs[0]!r}", int(number), 0, rows - 1)
    return {name: _narrowed(array, network.values[name]) for name, array in found.items()}


def _narrowed(elements: NDArray[Any], value: Value) -> NDArray[Any]:
    return elements.astype(value.kind) if value.bits > 16 else elements


def real_outputs(network: Network, elements: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the model's outputs, by its names and in its shapes.

    ``elements``: stored elements by the value's name.
    """
    found: dict[str, NDArray[Any]] = {}
    for tensor in model_outputs(network):
        value = network.values[tensor.value]
        stored = elements_of_model(elements[value.name], tensor, value)
        if tensor.real:
            found[tensor.name] = (stored.astype(np.int32) - value.zero).astype(np.float32) * np.float32(
                value.scale
            )
        else:
            found[tensor.name] = stored.view(np.uint8) ^ np.uint8(128) if value.unsigned else stored
    return found


def _plain(network: Network, names: tuple[str, ...]) -> tuple[ModelTensor, ...]:
    return tuple(
        ModelTensor(name=name, value=name, shape=(1, *network.values[name].shape), order=NHWC, real=True)
        for name in names
    )


def _stored(tensor: ModelTensor, value: Value, tensors: Tensors) -> NDArray[Any]:
    what = f"input {tensor.name!r}"
    if tensor.name not in tensors:
        raise InputError(what, "missing", f"an array of shape {tensor.shape}")
    array = np.asarray(tensors[tensor.name])
    if array.shape not in (tensor.shape, tensor.shape[1:]):
        raise InputError(f"shape of {what}", array.shape, f"{tensor.shape}, with or without the batch")
    wanted = element_type(tensor, value)
    if not (array.dtype.kind == "f" if tensor.real else array.dtype == wanted):
        raise InputError(f"element type of {what}", str(array.dtype), wanted)
    if tensor.real:
        with np.errstate(over="ignore"):  # refused below
            numbers = array.astype(np.float32)
        if not np.isfinite(numbers).all():
            raise InputError(what, "NaN or infinity", "finite numbers of float32")
        stored = quantize(numbers, value)
    else:
        stored = (array ^ np.uint8(128)).view(np.int8) if value.unsigned else array
    return elements_of_value(stored, tensor, value)


def elements_of_value(array: NDArray[Any], tensor: ModelTensor, value: Value) -> NDArray[Any]:
    """Return elements in the model's shape, with or without the batch, in the value's shape and order."""
    return _to_hwc(array.reshape(tensor.shape), tensor).reshape(value.shape)


def elements_of_model(array: NDArray[Any], tensor: ModelTensor, value: Value) -> NDArray[Any]:
    """Return a value's elements in the model's shape and order."""
    return _from_hwc(array.reshape(value.shape), tensor)


def _axes(tensor: ModelTensor) -> list[int]:
    """Return the axes of height, width and channels that the model's shape has."""
    return [tensor.order.index(letter) for letter in "HWC" if letter in tensor.order]


def _to_hwc(array: NDArray[Any], tensor: ModelTensor) -> NDArray[Any]:
    """Return an array of the model's shape with the channels last; a vector's elements keep their order."""
    if tensor.order == VECTOR:
        return array
    return array.transpose(0, *_axes(tensor))


def _from_hwc(elements: NDArray[Any], tensor: ModelTensor) -> NDArray[Any]:
    """Return elements of shape ``(height, width, channels)`` in the model's order and shape."""
    order = ["HWC".index(letter) for letter in tensor.order if letter != "N"]
    if len(order) == elements.ndim:
        elements = elements.transpose(order)
    return np.ascontiguousarray(elements.reshape(tensor.shape))
