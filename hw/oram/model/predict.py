"""What a launch of the oblivious map takes, without running it; `hw.oram.engine.OramEngine.predict`."""

from __future__ import annotations

from hw.board import Board
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.model.capacity import hbm_bytes
from hw.oram.model.flow import Flow, flow, host_link, initialization_cycles, likely_pages
from hw.oram.model.workload import OramWorkload
from hw.prediction import Prediction

#: Operations that are followed one by one; more go on as the second half of these did.
_FOLLOWED = 1024


def predict(workload: OramWorkload, config: OramConfig, board: Board) -> Prediction:
    """Count the bytes that the host sees, and predict the cycles that follow from its pages.

    Bytes of HBM are no part of it: they depend on what the host must not know.

    Raises
    ------
    InputError
        When the workload's pages are those of another configuration, or the board has no host memory.
    """
    operations, pages = workload.operations, workload.pages
    if pages is not None and len(pages) != operations * config.items:
        raise InputError(
            "touches of pages", len(pages), f"{config.items} for each of {operations} operations"
        )
    if pages is None:
        in_host = config.host_pages / config.labels if config.items == config.label_count else 1.0
        touched = round(operations * config.label_count * in_host)
    else:
        touched = sum(page is not None for page in pages)
    times = _flow(config, board, workload)
    before = round(initialization_cycles(config, board)) if workload.initialize else 0
    waits = {name: round(getattr(times, name)) for name in ("page", "host", "credit")}
    busy = min(operations * config.items * config.item_cycles, round(times.total) - sum(waits.values()))
    read = {"pages": touched * config.page_bytes, "commands": operations * config.command_bytes}
    written = (touched + config.host_pages * workload.initialize) * config.page_bytes
    write = {"pages": written, "responses": operations * config.command_bytes}
    return Prediction(
        cycles={
            "cycles_busy": before + busy,
            **{f"cycles_stall_{name}": cycles for name, cycles in waits.items()},
            "cycles_stall_deadline": round(times.total) - busy - sum(waits.values()),
            "cycles_idle": 0,
        },
        read_bytes=read,
        write_bytes=write,
        useful_macs=0,
        mac_slots_per_cycle=0,
        compulsory_bytes=sum(read.values()) + sum(write.values()),
        memory_bytes_per_cycle=2 / host_link(board).byte_cycles,
        least_compute_cycles=operations * config.interval,
        details={
            "operations": operations,
            "page_touches": touched,
            "cycles_per_operation": times.total / operations,
            "hbm_bytes": hbm_bytes(config),
        },
    )


def _flow(config: OramConfig, board: Board, workload: OramWorkload) -> Flow:
    """Follow the first operations, and go on as they did."""
    operations = workload.operations
    followed = min(operations, _FOLLOWED)
    pages = workload.pages or likely_pages(config, followed)
    half, whole = flow(config, board, pages[: followed * config.items])
    more = (operations - followed) / (followed - followed // 2)
    return Flow(*(cycles + more * (cycles - before) for cycles, before in zip(whole, half, strict=True)))
