"""A job in integers: the tensors and numbers that the engine computes with."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hw.attention.driver.formats import Output, Scaling
from hw.attention.driver.mask import Mask


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerJob:
    """All heads of one sequence in one mode with one set of scales."""

    #: int8, ``[H, Nq, dqk]``, ``[Hkv, Nk, dqk]``, ``[Hkv, Nk, dv]``; H is a multiple of Hkv.
    q: NDArray[np.int8]
    k: NDArray[np.int8]
    v: NDArray[np.int8]
    scale: Scaling  #: Multiplier and shift of the scores, with or without a cap.
    output: Output  #: Format of the results.
    mask: Mask = field(default_factory=Mask)  #: Visible keys.
    cap: int = 0  #: Cap multiplier c, 0 for no cap.
    #: ALiBi slope of each head in units of 2^-24 log2 units a key, or None.
    slopes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self.mask.check(self.q.shape[1], self.k.shape[1])
