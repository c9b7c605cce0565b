"""What a trace of the host's memory tells of pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.memory.trace import Channel, accesses


def page_bytes(trace: NDArray[Any], pages: range) -> Mapping[str, int]:
    """Give the bytes read and written of the addresses ``pages``."""
    found = accesses(trace)
    found = found[(found["address"] >= pages.start) & (found["address"] < pages.stop)]
    reads = found["channel"] == Channel.AR
    return {
        "read": int(np.sum(found["bytes"][reads], dtype=np.int64)),
        "write": int(np.sum(found["bytes"][~reads], dtype=np.int64)),
    }
