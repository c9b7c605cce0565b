"""Operations on the map, and their results, as arrays."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Status of a response whose tag is wrong; its key and value are 0.
UNVERIFIED = 255


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Operations in order."""

    codes: NDArray[np.uint8]  #: [n]: `hw.oram.core.layouts.Code`.
    keys: NDArray[np.uint64]  #: [n].
    values: NDArray[np.uint8]  #: [n, V]: zeros for operations without one.

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, kw_only=True)
class OperationResults:
    """OperationResults of operations, in order."""

    statuses: NDArray[np.uint8]  #: [n]: `hw.oram.core.layouts.Status`, or `UNVERIFIED`.
    keys: NDArray[np.uint64]  #: [n].
    values: NDArray[np.uint8]  #: [n, V]: the value before the operation, zeros if none.

    def __len__(self) -> int:
        return len(self.statuses)
