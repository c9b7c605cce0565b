"""The core's schedule without memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hw.attention.config import AttentionConfig
from hw.attention.driver.shapes import JobShape, PassShape
from hw.attention.model.cycles import CoreSchedule
from hw.attention.model.supply import Supply


def core_cycles(
    config: AttentionConfig, passes: Iterable[PassShape], *, beat_width: int = 256, decode: bool = False
) -> int:
    """Return the exact cycles of the core alone, with streams that never stall it.

    They go from the first cycle with a command to the last beat of results, both included.

    ``passes``: see `pass_shapes`. ``decode``: whether their jobs decode.
    """
    stream = Supply()
    schedule = CoreSchedule(
        config, beat_width=beat_width, queries=stream, keys=stream, values=stream, decode=decode
    )
    for shape in passes:
        schedule.add(shape)
    return schedule.last_output + 1


def pass_shapes(
    config: AttentionConfig, *, query_size: int = 0, value_size: int = 0, **job: Any
) -> Iterator[PassShape]:
    """Return the shapes of the passes of a `JobShape`; sizes default to the lanes."""
    query_size, value_size = query_size or config.lanes, value_size or config.lanes
    for this in JobShape(query_size=query_size, value_size=value_size, **job).passes(config):
        yield this.shape
