"""When the last results of a launch are on the bus: bursts leave when they are whole, see `WriteDMA`."""

from __future__ import annotations

from collections.abc import Iterator

from hw.attention.model.pieces import Pieces
from hw.attention.movers.result_writer import ResultWriter


def bursts(first: int, end: int, *, beat_bytes: int, burst_beats: int) -> Iterator[tuple[int, int]]:
    """Return of each burst of a command for the bytes ``first <= n < end`` how many beats it has, and its
    end.

    See `hw.lib.dma.burst.BurstSplitter`.
    """
    block = beat_bytes * burst_beats
    while first < end:
        stop = min(end, (first // block + 1) * block)
        yield -(-stop // beat_bytes) - first // beat_bytes, stop
        first = stop


def sent(
    drained: int,
    *,
    free: int,
    pieces: Pieces,
    row_bytes: int,
    beat_bytes: int,
    burst_beats: int,
) -> int:
    """Return the cycle of the last beat of a pass's results on the bus of a port.

    ``drained``: cycle in which the core gives the last one; it gives one a cycle. ``free``: cycle of the last
    beat before them on the bus. ``pieces``, ``row_bytes``: where they lie, and the bytes of a row.
    ``beat_bytes``, ``burst_beats``: of the port, and of its longest burst.
    """
    row_beats = -(-row_bytes // beat_bytes)
    rows = pieces.length // row_bytes
    begins = drained + 1 - pieces.count * rows * row_beats
    for number in range(pieces.count):
        first = pieces.first + number * pieces.stride
        for beats, end in bursts(
            first, first + pieces.length, beat_bytes=beat_bytes, burst_beats=burst_beats
        ):
            # The packed word that has its last byte is whole, or the piece's last one.
            last = min(-(-(end - first) // beat_bytes) * beat_bytes, pieces.length) - 1
            row, rest = divmod(last, row_bytes)
            come = begins + (number * rows + row) * row_beats + rest // beat_bytes
            free = max(free + 1, come + ResultWriter.LATENCY) + beats - 1
    return free
