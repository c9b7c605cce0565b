"""Pieces of queries and results at their ports, and reads that hit an open row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hw.attention.config import AttentionConfig
from hw.attention.driver.shapes import JobPass, JobShape
from hw.attention.model.refresh import Refreshes
from hw.board import Board

#: Distance of the addresses of ports, so that no two share a row.
_PORT_BYTES = 1 << 48


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """The data of a pass at a port: pieces of equal length at equal distances, in bytes."""

    #: ``first``, ``stride``, ``count``: address of the first one, the bytes from one to the next, and how
    #: many there are.
    first: int
    stride: int
    count: int
    length: int  #: Of each.


class PassAddresses:
    """Addresses of passes in a launch's data at a port, where the heads of a job are contiguous."""

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        self._place = self._end = 0  # of the next block of a set of heads, and of the next set

    def add(self, job: JobShape, this: JobPass, *, row_bytes: int) -> Pieces:
        """Return the pieces of the next pass, with ``row_bytes`` a row."""
        head = job.queries * row_bytes
        if this.opens_set:
            self._place = self._end
            self._end += this.heads * head
        # Heads packed into a pass are separate pieces, unless they are contiguous.
        count = this.heads if job.queries > job.positions(self._config) else 1
        pieces = Pieces(
            first=self._place, stride=head, count=count, length=this.shape.rows // count * row_bytes
        )
        self._place += pieces.length
        return pieces


def dealt(pieces: Pieces, *, ports: int, unit: int) -> Pieces:
    """Return the pieces at the port with the most of ``pieces``, whose units of ``unit`` bytes are dealt in
    turn.

    If some ports get none, addresses start behind those of the ports before.
    """
    units = pieces.length // unit
    if units >= ports:
        length, count, stride = -(-units // ports) * unit, pieces.count, pieces.stride // ports
        return Pieces(first=pieces.first // ports, stride=stride // unit * unit, count=count, length=length)
    places: list[list[int]] = [[] for _ in range(ports)]
    for n in range(pieces.count):
        for part in range(units):
            place, port = divmod((pieces.first + n * pieces.stride) // unit + part, ports)
            places[port].append(place * unit)
    most = max(places, key=len)
    stride = most[1] - most[0] if len(most) > 1 else 0
    first = most[0] + places.index(most) * _PORT_BYTES
    return Pieces(first=first, stride=stride, count=len(most), length=unit)


def ports_used(pieces: Pieces, *, ports: int, unit: int) -> set[int]:
    """Return the ports with a unit of ``pieces``, whose units of ``unit`` bytes are dealt in turn."""
    parts = range(min(ports, pieces.length // unit))
    return {
        ((pieces.first + n * pieces.stride) // unit + part) % ports
        for n in range(pieces.count)
        for part in parts
    }


class OpenRows:
    """Delays of a port's reads against a read of idle memory whose row is closed.

    A row stays open until the next refresh.

    ``refreshes``: of its memory. ``channels``: the data are spread alike over them; addresses are those of
    the first one.
    """

    def __init__(self, board: Board, refreshes: Refreshes, channels: Sequence[int] = (0,)) -> None:
        timing = board.dram_timing
        self._row, self._granule = ~timing.column_mask, timing.granule_bytes
        self._groups = timing.bank_groups
        self._saved = board.idle_read_cycles - 1 - math.floor(board.cycles(timing.open_read_ns))
        self._refreshes, self._channels = refreshes, channels
        self._open: set[int] = set()
        self._seen = 0

    def later(self, cycle: int, pieces: Pieces, channels: Sequence[int] = ()) -> int:
        """Return the delay of the first data of ``pieces``, requested in this cycle; negative for a hit.

        They lie in ``channels``, or in all of them.
        """
        seen, _ = self._refreshes.since(self._channels[0], cycle)
        if seen != self._seen:
            self._seen = seen
            self._open.clear()
        hit = pieces.first & self._row in self._open
        # Neighbours may lie in different bank groups: the last read leaves a row of each open.
        most = min(-(-pieces.length // self._granule), self._groups)
        self._open = {
            (pieces.first + n * pieces.stride + pieces.length - 1 - m * self._granule) & self._row
            for n in range(pieces.count)
            for m in range(most)
        }
        return self._refreshes.wait(channels or self._channels, cycle) - hit * self._saved
