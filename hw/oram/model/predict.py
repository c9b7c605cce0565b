"""Prediction of a launch of the oblivious map; `hw.oram.engine.OramEngine.predict`."""

import functools

from hw.board import Board
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.driver.capacity import hbm_bytes, host_structures
from hw.oram.driver.workload import OramWorkload
from hw.oram.model.launch import LaunchTimes, launch_times, random_pages
from hw.oram.model.link import Link, block_bursts
from hw.oram.movers.erase import erase_cycles
from hw.oram.movers.timing import PathTiming
from hw.oram.sizing.failures import check_overflow, failures
from hw.prediction import Prediction

#: Operations followed where pages are unknown; more repeat the second half of these. The result is within 3 %
#: of that with as many random pages.
_FOLLOWED = 4096
#: Cycles from the end of HBM's erasure to the keys' derivation, and from there to the end.
_FINISH_EXTRA = 2


def predict(workload: OramWorkload, config: OramConfig, board: Board) -> Prediction:
    """Count the bytes that the host sees, and predict the cycles that follow from its pages.

    It takes time proportional to the operations followed: all of them with known pages, else at most
    `_FOLLOWED`. Bytes of HBM are not predicted: they depend on secrets.

    Details have the cycles of an operation twice: `cycles_per_operation` with the fixed end of a launch, and
    `operating_cycles_per_operation` without it; both are without the initialization.

    Raises `InputError` when the workload's pages are those of another configuration, the board has no host
    memory, or lists may overflow.
    """
    check_overflow(config)
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
    times = _times(config, board, used, workload)
    before = round(initialization_cycles(config, link)) if workload.initialize else 0
    after = finish_cycles(config) if workload.finish else 0
    end = PathTiming(config).end
    waits = {name: round(getattr(times, name)) for name in ("page", "host", "credit")}
    busy = min(operations * config.items * config.item_cycles, round(times.total) - sum(waits.values()))
    read = {"pages": touched * config.page_bytes, "commands": operations * config.command_bytes}
    written = (touched + config.host_pages * workload.initialize) * config.page_bytes
    write = {"pages": written, "responses": operations * config.command_bytes}
    return Prediction(
        cycles={
            "cycles_busy": before + busy + after,
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
            "initialization_cycles": before,
            "end_cycles": end + after,
            "operating_cycles_per_operation": (round(times.total) - end) / operations,
            "hbm_bytes": hbm_bytes(config),
            "record_slots": config.record_slots,
            **failures(config),
        },
    )


def initialization_cycles(config: OramConfig, link: Link) -> float:
    """Return the cycles until the map is empty: keys, then the slower of two.

    One is the pages, in their interval or at the link's rate. The other is the erasure of HBM.
    """
    pages = link.least_cycles(
        read_bytes=0,
        write_bytes=config.host_pages * config.page_bytes,
        write_bursts=config.host_pages * block_bursts(config.page_bytes),
    )
    pages = max(pages, config.host_pages * config.page_cycles) + link.write_cycles
    timing = PathTiming(config)
    return timing.keys + max(pages, erase_cycles(config)) + timing.quiet


def finish_cycles(config: OramConfig) -> int:
    """Return the cycles of the erasure at the end, of HBM and then of the keys, beyond those of an end
    without it.
    """
    timing = PathTiming(config)
    return erase_cycles(config) + timing.keys + _FINISH_EXTRA - timing.end


def _times(config: OramConfig, board: Board, used_bytes: int, workload: OramWorkload) -> LaunchTimes:
    """Follow all operations with known pages, else at most `_FOLLOWED`."""
    if workload.pages is not None:
        return launch_times(config, Link(board, used_bytes=used_bytes), workload.pages)[1]
    followed = min(workload.operations, _FOLLOWED)
    half, whole = _drawn(config, board, used_bytes, followed)
    more = (workload.operations - followed) / max(1, followed // 2)
    return LaunchTimes(*(cycles + more * steady for cycles, steady in zip(whole, half, strict=True)))


@functools.lru_cache(maxsize=256)
def _drawn(
    config: OramConfig, board: Board, used_bytes: int, operations: int
) -> tuple[LaunchTimes, LaunchTimes]:
    """Follow operations with random pages: half of them, and all. Comparisons repeat the call."""
    return launch_times(config, Link(board, used_bytes=used_bytes), random_pages(config, operations))
