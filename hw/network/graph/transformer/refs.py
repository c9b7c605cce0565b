"""References to tensors while a transformer's graph is read: expressions that are not yet blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from hw.network.graph.refs import Array
from hw.network.graph.transformer.blocks import Floats, Parameters


@dataclass(frozen=True, kw_only=True)
class Ids:
    """The numbers of the tokens."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """A tensor of tokens, or a function of each of its elements."""

    value: str
    #: None: the tensor itself.
    function: Callable[[Array], Array] | None = None
    factor: float = 1.0  #: Where the function is a product with it; 0 for any other function.


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The integers of a quantized tensor."""

    value: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Integers:
    """Rows of a table of integers, whose scale still comes."""

    ids: str
    table: Array


class Part(Enum):
    """Results of DynamicQuantizeLinear."""

    STORED = "integers"
    SCALE = "their scale"
    ZERO = "their zero point"


@dataclass(frozen=True, kw_only=True, eq=False)
class Dynamic:
    """A tensor that is quantized while the model runs; a scale may have those of weights beside it."""

    value: str
    part: Part
    factors: Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class DynamicProduct:
    """A product of such integers, whose scales still come."""

    value: str
    weights: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Product:
    """A product with weights, whose bias may still come."""

    value: str
    weights: Parameters
    bias: Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Shifted:
    """A tensor and constant rows that are added to it."""

    value: str
    rows: Parameters


class Stage(Enum):
    """Steps of a LayerNorm that the graph has as operators of their own."""

    MEAN = "mean"
    CENTERED = "values less their mean"
    SQUARED = "squares of these"
    VARIANCE = "their mean"
    DEVIATION = "root of the variance"
    RECIPROCAL = "its reciprocal"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a LayerNorm of a tensor."""

    value: str
    stage: Stage
    epsilon: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Normal:
    """Normalized channels of a tensor, with their gain and bias."""

    value: str
    epsilon: float
    gain: Floats | None = None
    bias: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class Heads:
    """Channels by heads; ``order`` has T, H and D for tokens, heads and channels of a head."""

    value: str
    order: str
    heads: int
    factor: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Products of queries and keys."""

    queries: str
    keys: str
    heads: int
    factor: float
    causal: bool = False


@dataclass(frozen=True, kw_only=True)
class Probabilities:
    """Softmax of scores."""

    scores: Scores


@dataclass(frozen=True, kw_only=True)
class Flags:
    """Where something is no number, which never is."""


@dataclass(frozen=True, kw_only=True)
class Mixed:
    """Values weighed by probabilities."""

    scores: Scores
    values: str
    order: str


@dataclass(frozen=True, kw_only=True)
class Total:
    """The sum of a tensor over all tokens, times a factor."""

    value: str
    factor: float


Ref = (
    Ids | Tokens | Stored | Integers | Dynamic | DynamicProduct | Product | Shifted | Step | Normal | Heads
    | Scores | Probabilities | Flags | Mixed | Total
)  # fmt: skip
