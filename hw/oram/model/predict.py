"""What a launch of the oblivious map takes, without running it; `hw.oram.engine.OramEngine.predict`."""

from __future__ import annotations

import functools

from hw.board import Board
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.driver.capacity import hbm_bytes, host_structures
from hw.oram.driver.workload import OramWorkload
from hw.oram.model.flow import Flow, flow, likely_pages
from hw.oram.model.link import Link, block_bursts
from hw.oram.movers.timing import Timing
from hw.prediction import Prediction

#: Operations that are followed one by one where their pages are not known; more go on as the second half of
#: these did.  Of 2^14 to 2^18 keys, where few operations wait for a page but long, they may be 8 % off.
_FOLLOWED = 4096


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
    used = host_structures(config)[0].total_bytes + 2 * workload.ring_slots * config.command_bytes
    link = Link(board, used_bytes=used)
    times = _flow(config, board, used, workload)
    before = round(initialization_cycles(config, link)) if workload.initialize else 0
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
        memory_bytes_per_cycle=1 / max(link.byte_cycles / 2, link.shared_byte_cycles),
        least_compute_cycles=operations * config.interval,
        details={
            "operations": operations,
            "page_touches": touched,
            "cycles_per_operation": times.total / operations,
            "hbm_bytes": hbm_bytes(config),
        },
    )


def initialization_cycles(config: OramConfig, link: Link) -> float:
    """Return the cycles until the map is empty: keys, then pages in their interval, as the link takes them,
    or the beats of records and buckets at their ports, if those take longer.
    """
    pages = link.least_cycles(
        read_bytes=0,
        write_bytes=config.host_pages * config.page_bytes,
        write_bursts=config.host_pages * block_bursts(config.page_bytes),
    )
    pages = max(pages, config.host_pages * config.page_cycles) + link.write_cycles
    beats = max(config.records / config.record_ports, 2 * config.buckets / config.position_ports)
    timing = Timing(config)
    return timing.keys + max(pages, beats) + timing.quiet


def _flow(config: OramConfig, board: Board, used_bytes: int, workload: OramWorkload) -> Flow:
    """Follow all operations whose pages are known, else some."""
    if workload.pages is not None:
        return flow(config, Link(board, used_bytes=used_bytes), workload.pages)[1]
    followed = min(workload.operations, _FOLLOWED)
    half, whole = _drawn(config, board, used_bytes, followed)
    more = (workload.operations - followed) / (followed - followed // 2)
    return Flow(*(cycles + more * (cycles - before) for cycles, before in zip(whole, half, strict=True)))


@functools.lru_cache(maxsize=256)
def _drawn(config: OramConfig, board: Board, used_bytes: int, operations: int) -> tuple[Flow, Flow]:
    """Follow operations whose pages are drawn: their first half, and all. Comparing asks again."""
    return flow(config, Link(board, used_bytes=used_bytes), likely_pages(config, operations))
