"""Cycles of a memory channel for pieces in different rows of a bank."""

from collections import defaultdict

from hw.attention.model.pieces import Pieces
from hw.board import Board
from hw.board.dram_timing import map_fields


class PieceTimes:
    """Cycles of a channel for the pieces of a pass, one of many of the same heads.

    Heads at a distance of some KiB share a bank, which opens a row for each of them.  Before it opens the
    next row, it serves the requests for the open row in its window, including those of later passes.

    ``write``: whether the pieces are written.
    """

    def __init__(self, board: Board, *, write: bool) -> None:
        timing = board.dram_timing
        self._timing = timing
        self._window = timing.write_window_granules if write else timing.window_granules
        # From an activate to the first column command; from the last one to the next activate.
        self._opens = timing.rcd_write_ck if write else timing.rcd_read_ck
        written = timing.cas_write_latency_ck + timing.data_ck + timing.write_recovery_ck
        self._closes = timing.rp_ck + (written if write else timing.read_to_precharge_ck)
        # The share of the time without refreshes.
        share = 1 - timing.refresh_ns / timing.refresh_interval_ns
        self._cycles_ck = board.cycles(1e3 / timing.command_clock_mhz) / share
        shift = timing.granule_bytes.bit_length() - 1
        self._bank = 0
        for letter, bits in map_fields(timing.address_map):
            if letter in "GB":
                self._bank |= ((1 << bits) - 1) << shift
            shift += bits

    def cycles(self, pieces: Pieces) -> float:
        """Return the cycles for the pieces of a pass; 0 if no bank holds more than one row of them."""
        if pieces.count == 1:
            return 0.0
        timing, granule = self._timing, self._timing.granule_bytes
        rows: dict[int, set[int]] = defaultdict(set)
        granules: dict[int, int] = defaultdict(int)
        for n in range(pieces.count):
            first = pieces.first + n * pieces.stride
            for address in range(first // granule * granule, first + pieces.length, granule):
                bank = address & self._bank
                rows[bank].add(address & ~timing.column_mask)
                granules[bank] += 1
        # The window holds requests that wait for a row; others are served at once.  Requests of one row are
        # served in a visit as long as the requests before leave room for the next one in the window.
        waiting = sum(granules[bank] for bank, found in rows.items() if len(found) > 1)
        each = waiting / max(map(len, rows.values()))
        go = 1
        while waiting and go * waiting <= self._window + (go - 1) * each:
            go += 1
        times = [0.0]
        for bank, found in rows.items():
            if len(found) > 1:
                moved = go * granules[bank] / len(found)
                visit = self._opens + (moved - 1) * timing.ccd_long_ck + self._closes
                times.append(len(found) * max(timing.rc_ck, visit) / go)
        return max(times) * self._cycles_ck
