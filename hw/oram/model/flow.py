"""When touches of a launch turn, by the rules of its gates (docs/oram.md, Time) and a model of the host."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from hw.board import Board
from hw.errors import InputError
from hw.oram.config import BEAT_BYTES, BLOCK_BYTES, BURST_BYTES, OramConfig
from hw.oram.model.link import Link
from hw.oram.movers.ring.command_reader import CommandReader
from hw.oram.movers.ring.response_writer import ResponseWriter
from hw.oram.movers.timing import Timing

#: Cycles from a gate to a port's address, and from a port's last beat to what a gate counts.
_ADDRESS_CYCLES, _THERE_CYCLES = 8, 3
#: Cycles from a turn to the first issue that counts it, and from a page's release to its next issue.
_TOLD_CYCLES, _FREE_CYCLES = 2, 3
#: Cycles of all keys, and of each of their powers, one for a block of a page.
_KEY_CYCLES, _POWER_CYCLES = 400, 5
#: Cycles a launch waits for the bus to stay quiet, after initialization and at its end.
_QUIET_CYCLES = 128


class Flow(NamedTuple):
    """Cycles from the request of the first command to the end of a launch: in all, and of those, how many
    touches waited for their page to be free, for the host, and for others to turn.
    """

    total: float
    page: float
    host: float
    credit: float


def host_link(board: Board) -> Link:
    """Give the way to the host's memory.

    Raises
    ------
    InputError
        When the board has none.
    """
    if board.host is None:
        raise InputError("board", board.name, "one with access to the host's memory, where pages lie")
    return Link(board.host, board.clock_mhz)


def initialization_cycles(config: OramConfig, board: Board) -> float:
    """Give the cycles until the map is empty: pages in their interval, as the link takes them, or the beats
    of records and buckets at their ports, if those take longer.
    """
    link = host_link(board)
    page_cycles = max(
        config.item_cycles,
        config.page_bytes * link.byte_cycles,
        -(-config.page_bytes // BURST_BYTES) * link.write_burst_cycles,
    )
    beats = max(config.records / config.record_ports, 2 * config.buckets / config.position_ports)
    keys = _KEY_CYCLES + _POWER_CYCLES * config.page_bytes / BLOCK_BYTES
    return keys + max(config.host_pages * page_cycles + link.write_cycles, beats) + _QUIET_CYCLES


def likely_pages(config: OramConfig, operations: int) -> list[int | None]:
    """Give pages of touches as labels give them: each as likely, whatever is done."""
    draw = random.Random(0)
    pages: list[int | None] = []
    for _ in range(operations * config.label_count):
        label = draw.randrange(config.labels)
        if config.items > config.label_count:
            pages += [None, draw.randrange(config.host_pages)]
        else:
            pages.append(label - config.hbm_labels if label >= config.hbm_labels else None)
    return pages


def flow(config: OramConfig, board: Board, pages: Sequence[int | None]) -> tuple[Flow, Flow]:
    """Follow operations that touch ``pages``, `OramConfig.items` each: give the first half, and all.

    With a(n) the acceptance of an operation, i(j) the issue of a touch, q(j) its turn and r(j) its release;
    see docs/oram.md.
    """
    timing, link = Timing(config), host_link(board)
    items, step, size = config.items, config.item_cycles, config.command_bytes
    operations = len(pages) // items
    there: list[float] = []  # by operation
    accepted: list[float] = []
    answered: list[float] = []
    waiting: list[float] = []  # by response that is not written: when it was there
    issued: list[float] = []  # by touch
    turned: list[float] = []
    waited: list[bool] = []  # for the host
    left: list[float] = []  # by touch with a page
    released: list[float] = []
    free_from: dict[int, float] = {}
    waits = {"page": 0.0, "host": 0.0, "credit": 0.0}
    half = Flow(0, 0, 0, 0)

    def ask(request: float) -> None:
        """Ask for the next group of commands."""
        count = min(config.ring_group, operations - len(there))
        last = _read(link, request + CommandReader.ADDRESS_LATENCY, count * size)
        beats = size // BEAT_BYTES
        there.extend(last - (count - 1 - n) * beats + CommandReader.THERE_LATENCY for n in range(count))

    def answer(go: float) -> None:
        """Write the responses that wait."""
        _, written = _write(link, go + ResponseWriter.ADDRESS_LATENCY, len(waiting) * size)
        answered.extend(written + ResponseWriter.WRITTEN_LATENCY + n for n in range(len(waiting)))
        waiting.clear()

    for begin in range(0, min(config.command_records, operations), config.ring_group):
        ask(begin // config.ring_group * CommandReader.SPACING)
    for n in range(operations):
        accept = max(there[n], accepted[-1] + config.interval if n else 0)
        if n >= config.accepted:
            accept = max(accept, issued[(n - config.accepted) * items] + _TOLD_CYCLES)
        accepted.append(accept)
        if min(len(there) + config.ring_group, operations) == n + 1 + config.command_records:
            ask(accept + size / BEAT_BYTES + 2)
        for at in range(items):
            page = pages[n * items + at]
            issue = issued[-1] + step if issued else 0
            if at == 0:
                issue = max(issue, accept + timing.position)
            held, by_host = issue, False
            if at == 0 and n >= config.inflight:
                holder = (n - config.inflight + 1) * items - 1
                held, by_host = max(held, turned[holder] + _TOLD_CYCLES), waited[holder]
            if len(released) >= config.scoreboard_pages:
                held = max(held, released[-config.scoreboard_pages] + 1)
            waits["host" if by_host else "credit"] += held - issue
            issue = max(held, free_from.get(page, 0)) if page is not None else held
            waits["page"] += issue - held
            issued.append(issue)
            ready = turn = max(issue + timing.touch, turned[-1] + step if turned else 0)
            if len(left) >= config.write_pages:
                turn = max(turn, left[-config.write_pages] + 2)
            if at == items - 1 and n >= config.response_records:
                turn = max(turn, answered[n - config.response_records] + 2)
            if page is not None:
                turn = max(turn, _read(link, issue + _ADDRESS_CYCLES, config.page_bytes) + _THERE_CYCLES)
                sealed = turn + timing.page_sealed + _THERE_CYCLES
                last, written = _write(link, sealed, config.page_bytes)
                left.append(last)
                release = max(turn + config.settle_cycles, written + 2)
                released.append(max(release, released[-1] + 1) if released else release)
                free_from[page] = released[-1] + _FREE_CYCLES
            turned.append(turn)
            waited.append(turn > ready)
        whole = turned[-1] + timing.response_sealed
        if waiting and whole > waiting[0] + ResponseWriter.WAIT:
            answer(waiting[0] + ResponseWriter.WAIT)
        waiting.append(whole)
        if not (n + 1) % config.ring_group or (n + 1 < len(there) and there[n + 1] > whole):
            answer(whole)
        if n + 1 == operations // 2:
            # Of many operations, half end with a group, which is answered.
            half = Flow((answered or [whole])[-1] + _QUIET_CYCLES, **waits)
    if waiting:
        answer(waiting[-1])
    return half, Flow(answered[-1] + _QUIET_CYCLES, **waits)


def _bursts(size: int) -> list[int]:
    """Cut a block, as if it began at a multiple of `BURST_BYTES`."""
    return [min(BURST_BYTES, size - at) for at in range(0, size, BURST_BYTES)]


def _read(link: Link, cycle: float, size: int) -> float:
    return max(link.read(cycle + n, burst) for n, burst in enumerate(_bursts(size)))


def _write(link: Link, cycle: float, size: int) -> tuple[float, float]:
    for n, burst in enumerate(_bursts(size)):
        end = link.write(cycle + n, burst)
    return end
