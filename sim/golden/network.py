"""Golden model of a quantized network: every operator by its integer or float32 rule, in NumPy.

Sums of convolutions are exact.  Their results are ``rint(float32(sum) * float32(scale)) + zero``, clamped, as
onnxruntime's QLinear kernels compute them.  ``docs/networks.md`` lists all rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.network.graph.integers import (
    SOFTMAX_FRACTION_BITS,
    exponentials,
    mean_scale,
    output_scales,
    softmax_units,
)
from hw.network.graph.network import (
    GROUP_CHANNELS,
    Attention,
    AveragePool,
    Concat,
    Convolution,
    Gather,
    LayerNorm,
    MaxPool,
    Network,
    Operator,
    Product,
    Softmax,
    Sum,
    Table,
    TokenMean,
    Value,
    Window,
)
from hw.network.graph.products import product_rule
from hw.network.graph.sums import sum_rule, wide_sum_rule
from sim.golden.network_tokens import attention, gathered, layer_norm, token_mean


def execute(
    network: Network,
    inputs: Mapping[str, Any],
    *,
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return every value of a network, by name, as stored elements in the order height, width, channels.

    ``inputs``: the network's inputs. ``given``: values that replace computed ones for the operators that read
    them, so that each operator can be judged alone.
    """
    values = {**network.constants, **inputs}
    for operator in network.operators:
        read = [(given or {}).get(name, values[name]) for name in operator.inputs]
        values[operator.output] = result(operator, read, network.values)
    return values


def result(operator: Operator, read: list[Any], values: Mapping[str, Value]) -> Any:
    """Return an operator's result for its inputs."""
    before = [values[name] for name in operator.inputs]
    after = values[operator.output]
    found = _RULES[type(operator)](operator, read, before, after)
    return np.clip(found, operator.low, operator.high).astype(after.kind)


def scaled(sums: Any, factor: NDArray[np.float32] | np.float32, zero: int) -> NDArray[np.float64]:
    """Return sums times float32 factors, in float32, rounded to even; the zero point is added."""
    return np.rint(_factored(sums, factor)).astype(np.float64) + zero


def _factored(sums: Any, factor: NDArray[np.float32] | np.float32) -> NDArray[np.float32]:
    return sums.astype(np.float32) * np.asarray(factor, np.float32)


def _windows(image: NDArray[Any], window: Window, fill: int, size: tuple[int, ...]) -> Iterator[NDArray[Any]]:
    """Yield, for each tap of a window, the pixels it meets in the output's order."""
    top, left, bottom, right = window.pads
    padded = np.pad(image, ((top, bottom), (left, right), (0, 0)), constant_values=fill)
    for row in range(window.kernel[0]):
        for column in range(window.kernel[1]):
            first, begin = row * window.dilations[0], column * window.dilations[1]
            yield padded[
                first : first + (size[0] - 1) * window.strides[0] + 1 : window.strides[0],
                begin : begin + (size[1] - 1) * window.strides[1] + 1 : window.strides[1],
            ]


def _conv(operator: Convolution, read: list[Any], before: list[Value], after: Value) -> Any:
    size, groups = after.shape[:2], operator.groups
    image = read[0].astype(np.float64) - before[0].zero
    if before[0].group_shifts:
        image = image * (1 << before[0].lifts)
    weights = operator.weights.astype(np.float64)
    # Doubles hold every sum exactly.
    sums = np.zeros((groups, size[0] * size[1], after.shape[2] // groups))
    for number, pixels in enumerate(_windows(image, operator.window, 0, size)):
        tap = weights[divmod(number, operator.window.kernel[1])]
        # A matrix of each group: its pixels times its columns.
        sums += pixels.reshape(-1, groups, weights.shape[2]).transpose(1, 0, 2) @ (
            tap.reshape(weights.shape[2], groups, -1).transpose(1, 0, 2)
        )
    sums = sums.transpose(1, 0, 2).reshape(*size, after.shape[2]) + operator.bias
    factors = output_scales(before[0].finest_scale, operator.weight_scales, after.scale)
    return scaled(sums, factors, after.zero)


def _sum(operator: Sum, read: list[Any], before: list[Value], after: Value) -> Any:
    """onnxruntime's sum in float32, or the gates' own where these cannot reach it for all bytes."""
    if max(value.bits for value in (*before, after)) > 8:
        wide = wide_sum_rule(before[0], before[1], after)
        return wide.results(*(stored.astype(np.int64) for stored in read), zeros=(0, 0), zero=0)
    rule = sum_rule(before[0], before[1], after, last=operator.last)
    first, second = (stored.astype(np.int64) for stored in read)
    if rule.unequal:
        zeros = before[0].zero, before[1].zero
        return rule.results(first, second, zeros=zeros, zero=after.zero)
    # All pairs of bytes, then a pair's own.
    every = np.arange(-128, 128)
    pairs = every[:, None], every[None, :]
    a, b = operator.last, 1 - operator.last
    found = _float32_sum(pairs[a], before[a], pairs[b], before[b], after)
    return np.clip(found, -128, 127).astype(np.int8)[first + 128, second + 128]


def _float32_sum(a: Any, a_value: Value, b: Any, b_value: Value, after: Value) -> Any:
    """Return sums of stored integers as stored, by onnxruntime's QLinearAdd on the model's own integers.

    Its products and sums are fused: each rounds once.
    """

    def fused(first: Any, second: Any, third: Any) -> Any:
        # Wide enough for each product, and for the sum.
        product = np.asarray(first, np.longdouble) * np.asarray(second, np.longdouble)
        return (product + np.asarray(third, np.longdouble)).astype(np.float32)

    own_a, own_b, own = (128 * value.unsigned for value in (a_value, b_value, after))
    a_zero, b_zero = np.float32(a_value.zero + own_a), np.float32(b_value.zero + own_b)
    a_ratio = np.float32(a_value.scale) / np.float32(after.scale)
    b_ratio = np.float32(b_value.scale) / np.float32(after.scale)
    fixed = np.float32(after.zero + own) - fused(a_ratio, a_zero, b_ratio * b_zero)
    return np.rint(fused(a + own_a, a_ratio, fused(b + own_b, b_ratio, fixed))).astype(np.int64) - own


def _product(operator: Product, read: list[Any], before: list[Value], after: Value) -> Any:
    """onnxruntime's product in float32, or the gates' own where these cannot reach it for all bytes."""
    rule = product_rule(before[0], before[1], after)
    first, second = (each.astype(np.int64) for each in read)
    if rule.unequal:
        zeros = before[0].zero, before[1].zero
        return rule.results(first, second, zeros=zeros, zero=after.zero)
    scales = [np.float32(value.scale) for value in (*before, after)]
    product = (first - before[0].zero) * (second - before[1].zero)
    own = 128 * after.unsigned
    # The zero point is added in float32, before the rounding.
    return np.rint(_factored(product, scales[0] * scales[1] / scales[2]) + np.float32(after.zero + own)) - own


def _max_pool(operator: MaxPool, read: list[Any], before: list[Value], after: Value) -> Any:
    return np.maximum.reduce(list(_windows(read[0], operator.window, -128, after.shape[:2])))


def _average_pool(operator: AveragePool, read: list[Any], before: list[Value], after: Value) -> Any:
    size = after.shape[:2]
    image = read[0].astype(np.int64) - before[0].zero
    sums = np.add.reduce(list(_windows(image, operator.window, 0, size)))
    here = np.ones((*image.shape[:2], 1), np.int64)
    counts = np.add.reduce(list(_windows(here, operator.window, int(operator.counts_pads), size)))
    factors = mean_scale(before[0].scale, counts, after.scale)
    if operator.zero_first:
        return np.rint(_factored(sums, factors).astype(np.float64) + after.zero)
    return scaled(sums, factors, after.zero)


def _table(operator: Table, read: list[Any], before: list[Value], after: Value) -> Any:
    places = read[0].astype(np.int64) + 128
    if operator.results.ndim == 1:
        return operator.results[places]
    groups = np.arange(after.shape[2]) // GROUP_CHANNELS
    return operator.results[groups, places]


def _concat(operator: Concat, read: list[Any], before: list[Value], after: Value) -> Any:
    return np.concatenate(read, axis=2)


def _softmax(operator: Softmax, read: list[Any], before: list[Value], after: Value) -> Any:
    powers = exponentials(before[0].scale)
    stored = read[0].astype(np.int64)
    terms = powers[stored.max(axis=2, keepdims=True) - stored]
    total = terms.sum(axis=2, keepdims=True)
    # term / total / scale, rounded half up
    units = softmax_units(after.scale)
    return (2 * terms * units + (total << SOFTMAX_FRACTION_BITS)) // (
        total << 1 + SOFTMAX_FRACTION_BITS
    ) + after.zero


_RULES: dict[type[Operator], Callable[..., Any]] = {
    Convolution: _conv,
    Sum: _sum,
    Product: _product,
    MaxPool: _max_pool,
    AveragePool: _average_pool,
    Table: _table,
    Concat: _concat,
    Softmax: _softmax,
    Gather: gathered,
    LayerNorm: layer_norm,
    Attention: attention,
    TokenMean: token_mean,
}
