"""The activity of a launch, from the prediction of its engine or from its counters."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hw.board import Board, Memory
from hw.board.dram_timing import DramTiming, map_fields
from hw.energy.activity import Activity, MemoryActivity
from hw.energy.model import energy
from hw.engine import Engine
from hw.prediction import Prediction


def predicted_activity(
    engine: Engine[Any, Any], config: Any, board: Board, prediction: Prediction
) -> Activity:
    """Return the activity of a predicted launch.

    The memories are the kernels' and the host's. Bytes are those of the prediction's streams.
    """
    to_host = board.host if engine.predicts_host else None
    read, write = prediction.read_bytes_total, prediction.write_bytes_total
    memories = [memory_activity(board.memory)] + ([memory_activity(board.host)] if board.host else [])
    place = 1 if to_host else 0
    memories[place] = dataclasses.replace(memories[place], read_bytes=read, write_bytes=write)
    slots = prediction.mac_slots_per_cycle
    return Activity(
        clock_mhz=board.clock_mhz,
        cycles=prediction.cycles_total,
        busy_cycles=prediction.cycles.get("cycles_busy", 0),
        multiply_cycles=prediction.useful_macs / slots if slots else 0.0,
        kernel=engine.resources(config, board),
        words=engine.ram_words(config, board),
        device_luts=board.device.lut,
        memories=tuple(memories),
    )


def predicted_microjoules(
    engine: Engine[Any, Any], config: Any, board: Board, prediction: Prediction
) -> float:
    """Predict the energy of a launch, of kernel, device and memories."""
    return 1e-6 * energy(predicted_activity(engine, config, board, prediction)).total.value


def measured_activity(
    predicted: Activity, *, cycles: int, busy_cycles: int, moved: Mapping[str, Mapping[str, float | None]]
) -> Activity:
    """Return a predicted activity with cycles, bytes and rows replaced by counters.

    ``moved``: ``read_bytes``, ``write_bytes`` and ``activates`` of each counted memory, by its name.
    """
    memories = {memory.name: memory for memory in predicted.memories}
    for name, memory in memories.items():
        counted: dict[str, Any] = dict(moved.get(name, {"read_bytes": 0, "write_bytes": 0}))
        memories[name] = dataclasses.replace(memory, **counted)
    return dataclasses.replace(
        predicted,
        cycles=cycles,
        busy_cycles=busy_cycles,
        multiply_cycles=min(predicted.multiply_cycles, cycles),
        memories=tuple(memories.values()),
    )


def memory_activity(memory: Memory) -> MemoryActivity:
    """Return a board's memory without traffic."""
    return MemoryActivity(
        name=memory.name, kind=memory.kind, channels=memory.channels, row_bytes=row_bytes(memory)
    )


def row_bytes(memory: Memory) -> int:
    """Return the bytes of a row of memory; 0 for the host's, whose rows are not ours."""
    if not isinstance(memory.timing, DramTiming):
        return 0
    columns = sum(bits for letter, bits in map_fields(memory.timing.address_map) if letter == "C")
    granules: int = 1 << columns
    return memory.timing.granule_bytes * granules
