"""A transformer as blocks between tensors of tokens, with real parameters.

Each tensor has the channels of all tokens, or those of one row behind a mean.  Those that are quantized have
their scales beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hw.network.graph.refs import Array, Constant

Floats = NDArray[np.float64]
#: Parameters: real numbers, or integers with their scales.
Parameters = Floats | Constant


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantization:
    """How a tensor is stored: ``(real / scales + zero)``, rounded."""

    scales: Array  #: float32: one, or one a channel.
    zero: int
    bits: int  #: 8 or 16.
    unsigned: bool = False

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest stored integer."""
        low = 0 if self.unsigned else -(1 << self.bits - 1)
        return low, low + (1 << self.bits) - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """An operator: its node's name and ONNX operator, the tensors it reads and the one it makes."""

    name: str
    op: str
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Lookup(Block):
    """Rows of a table, by the numbers of tokens."""

    table: Parameters  #: ``(rows, channels)``.


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows(Block):
    """A constant row for each position; reads nothing."""

    rows: Parameters  #: ``(positions, channels)``.


@dataclass(frozen=True, kw_only=True, eq=False)
class Sum(Block):
    """The sum of two tensors."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Norm(Block):
    """LayerNorm over the channels."""

    gain: Floats
    bias: Floats
    epsilon: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Dense(Block):
    """A product with constant weights, ``(channels read, channels made)``, and a bias."""

    weights: Parameters
    bias: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Function(Block):
    """A function of each element alone."""

    real: Callable[[Array], Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class Attention(Block):
    """Attention of queries, keys and values."""

    heads: int
    scale: float  #: Multiplies the products of queries and keys.
    causal: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Mean(Block):
    """The mean of all tokens."""


@dataclass(frozen=True, kw_only=True, eq=False)
class First(Block):
    """The first token."""


#: Blocks that make one row of all tokens.
POOLS = (Mean, First)


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """A model: blocks in an order in which each reads only tensors that exist."""

    name: str
    ids: str  #: The model's input: numbers of tokens.
    blocks: tuple[Block, ...]
    channels: Mapping[str, int]  #: Of each tensor.
    outputs: Mapping[str, str]  #: Tensor by the name of the model's output.
    quantizations: Mapping[str, Quantization]

    @cached_property
    def readers(self) -> dict[str, list[Block]]:
        """Blocks that read each tensor."""
        found: dict[str, list[Block]] = {}
        for block in self.blocks:
            for name in dict.fromkeys(block.inputs):
                found.setdefault(name, []).append(block)
        return found


def real(parameters: Parameters) -> Floats:
    """Return parameters as real numbers."""
    return parameters.real if isinstance(parameters, Constant) else parameters


def pooled(blocks: Blocks, *, first: bool = False) -> Blocks:
    """Return the model with the mean of its first output's tokens, or their first, as its only output."""
    (output, tensor), *_ = blocks.outputs.items()
    made = f"{output}:{'first' if first else 'mean'}"
    kind, op = (First, "Gather") if first else (Mean, "ReduceMean")
    block = kind(name=made, op=op, inputs=(tensor,), output=made)
    return replace(
        blocks,
        blocks=(*blocks.blocks, block),
        channels={**blocks.channels, made: blocks.channels[tensor]},
        outputs={"sentence": made},
    )
