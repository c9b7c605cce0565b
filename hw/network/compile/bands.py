"""Bands: where the rows of a tensor lie in the scratchpad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Band:
    """Whole rows of a tensor in the scratchpad."""

    first: int  #: First row, and the row behind the last one.
    last: int
    address: int  #: Of the first row, in granules.


#: All bands of a tensor that a step reads or writes, by row.
Bands = Sequence[Band]
