"""Operations on the map, and their results, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: In the place of the status of a response whose tag is wrong; key and value are 0 then.
UNVERIFIED = 255


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Operations in order."""

    codes: NDArray[np.uint8]  #: [n]: `hw.oram.core.layouts.Code`.
    keys: NDArray[np.uint64]  #: [n].
    values: NDArray[np.uint8]  #: [n, V]: zeros where an operation has none.

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, kw_only=True)
class Results:
    """Results of operations, in order."""

    statuses: NDArray[np.uint8]  #: [n]: `hw.oram.core.layouts.Status`, or `UNVERIFIED`.
    keys: NDArray[np.uint64]  #: [n].
    values: NDArray[np.uint8]  #: [n, V]: the value before the operation, zeros where there was none.

    def __len__(self) -> int:
        return len(self.statuses)
