"""The products of an attention's queries, keys and values as one, head after head.

Columns are those of the first head's queries, keys and values, then of the second head's: the first head can
begin as soon as its columns are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.network.graph.integers import output_scales
from hw.network.graph.network import Convolution, Value


@dataclass(frozen=True, kw_only=True, eq=False)
class Operands(Convolution):
    """Joined products; their results have scales of their own."""

    factors: NDArray[np.float32]  #: Of each column's sum, to its result.
    zeros: NDArray[np.int64]  #: Zero point of each column's result.

    @classmethod
    def of(
        cls,
        products: Sequence[Convolution],
        after: Sequence[Value],
        before: Value,
        *,
        heads: int,
        output: str,
    ) -> Operands:
        """Join the products of queries, keys and values; ``after``: their results."""
        factors = [
            output_scales(before.finest_scale, each.weight_scales, value.scale)
            for each, value in zip(products, after, strict=True)
        ]

        def joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
            split = [part.reshape(*part.shape[:-1], heads, -1) for part in parts]
            return np.concatenate(split, axis=-1).reshape(*parts[0].shape[:-1], -1)

        zeros = [
            np.full(each.weights.shape[3], value.zero) for each, value in zip(products, after, strict=True)
        ]
        return cls(
            name=" ".join(each.name for each in products),
            inputs=products[0].inputs,
            output=output,
            low=products[0].low,
            high=products[0].high,
            weights=joined([each.weights for each in products]),
            bias=joined([each.bias for each in products]),
            weight_scales=joined([each.weight_scales for each in products]),
            factors=joined(factors),
            zeros=joined(zeros),
        )


def results_of(
    convolution: Convolution, before: Value, after: Value
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the factor of each column's sum, and the zero point of its result."""
    if isinstance(convolution, Operands):
        return convolution.factors, convolution.zeros
    factors = output_scales(before.finest_scale, convolution.weight_scales, after.scale)
    return factors, np.full(len(factors), after.zero)
