"""When the last results of a launch are on the bus: bursts leave when they are complete, see `WriteDMA`."""

from collections.abc import Iterator

from hw.attention.model.pieces import Pieces
from hw.attention.movers.result_writer import ResultWriter


def bursts(first: int, end: int, *, beat_bytes: int, burst_beats: int) -> Iterator[tuple[int, int]]:
    """Return the beats and the end of each burst of a command for the bytes ``first <= n < end``.

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

    ``drained``: cycle of the last beat from the core, a beat a cycle. ``free``: cycle of the last beat before
    on the bus. ``pieces``, ``row_bytes``: their pieces, and the bytes of a row. ``beat_bytes``,
    ``burst_beats``: of the port, and of its longest burst.
    """
    row_beats = -(-row_bytes // beat_bytes)
    rows = pieces.length // row_bytes
    begins = drained + 1 - pieces.count * rows * row_beats
    for number in range(pieces.count):
        first = pieces.first + number * pieces.stride
        for beats, end in bursts(
            first, first + pieces.length, beat_bytes=beat_bytes, burst_beats=burst_beats
        ):
            # The packed word with the burst's last byte is full, or the piece's last one.
            last = min(-(-(end - first) // beat_bytes) * beat_bytes, pieces.length) - 1
            row, rest = divmod(last, row_bytes)
            arrives = begins + (number * rows + row) * row_beats + rest // beat_bytes
            free = max(free + 1, arrives + ResultWriter.LATENCY) + beats - 1
    return free
