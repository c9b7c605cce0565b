"""How long a channel of memory takes for pieces that lie in different rows of a bank."""

from __future__ import annotations

from collections import defaultdict

from hw.attention.model.pieces import Pieces
from hw.board import Board
from hw.board.dram_timing import DramTiming, map_fields


class PieceTimes:
    """Cycles that a channel takes for the pieces of a pass, one of many of the same heads.

    Heads that lie a multiple of some KiB apart share a bank, which opens a row for each of them.  What it
    finds for the row at hand in its window of requests, the next passes' pieces among it, it moves before it
    opens the next one.

    ``write``: whether the pieces are written.
    """

    def __init__(self, board: Board, *, write: bool) -> None:
        timing = board.memory.timing
        assert isinstance(timing, DramTiming)  # a board's own memory is one: `hw.board.Board`
        self._timing = timing
        self._window = timing.write_window_granules if write else timing.window_granules
        # From an activate to the first column command; from the last one to the next activate.
        self._opens = timing.rcd_write_ck if write else timing.rcd_read_ck
        written = timing.cas_write_latency_ck + timing.data_ck + timing.write_recovery_ck
        self._closes = timing.rp_ck + (written if write else timing.read_to_precharge_ck)
        # What refreshes leave of the time.
        share = 1 - timing.refresh_ns / timing.refresh_interval_ns
        self._cycles_ck = board.cycles(1e3 / timing.command_clock_mhz) / share
        shift = timing.granule_bytes.bit_length() - 1
        self._bank = 0
        for letter, bits in map_fields(timing.address_map):
            if letter in "GB":
                self._bank |= ((1 << bits) - 1) << shift
            shift += bits

    def cycles(self, pieces: Pieces) -> float:
        """Return the cycles for the pieces of a pass; 0 where no bank has more than one row of them."""
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
        # Those that wait for a row are all that the window has: others are moved at once.  Pieces of a head
        # go in one go as long as those before have made room for the next one in the window.
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
