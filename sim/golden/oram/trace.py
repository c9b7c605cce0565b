"""The bus trace as a function of public values: revealed pages, the host, constants of the engine.

Nothing here depends on keys, values, codes, or HBM. `Admission` computes the cycles of acceptance, issue and
admission; bursts follow them by constants.
"""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hw.oram.config import BEAT_BYTES, BURST_BYTES, OramConfig
from hw.oram.core.touch.times import TouchTimes
from hw.oram.model.admission import Admission
from sim.golden.oram.hosts import HostTimes

#: Ports: pages, commands and responses.
PAGES, RING = "host0", "host1"


class Burst(NamedTuple):
    """A burst: cycle of its address handshake, port, direction, address, bytes."""

    cycle: int
    port: str
    write: bool
    address: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Constants of the engine, in cycles."""

    touches: TouchTimes  #: Of the controls.
    #: ``command_arrived`` to ``response_written``: cycles from an event on the bus to its pulse. The events
    #: are the last beat of a command, of a page read and of a page written, and the answers to a page's and a
    #: response's write.
    command_arrived: int = 3
    page_arrived: int = 1
    page_left: int = 1
    page_written: int = 1
    response_written: int = 3
    #: ``read_address``, ``write_address``, ``response_address``: cycles to an address on the bus: of a page's
    #: read from its issue, of its write from the last sealed beat, of responses from their departure.
    read_address: int = 8
    write_address: int = 3
    response_address: int = 8
    #: ``seal``, ``response``: from admission to the last beat of the sealed page, and of the operation's
    #: response.
    seal: int
    response: int
    response_wait: int = 128  #: Maximum cycles that a response waits for others.
    command_address: int = 7  #: From a request of commands to its address on the bus.
    command_seen: int = 2  #: From a command's beat on the bus to its comparison.
    #: ``command_spacing``: minimum cycles between requests. ``command_return``: from the later of the last
    #: dropped beat and the end of ``poll`` to the retry.
    command_spacing: int = 3
    command_return: int = 5


@dataclass(frozen=True, kw_only=True)
class BusLaunch:
    """Public arguments of a launch."""

    #: ``pages``, ``commands``, ``responses``: addresses.
    pages: int
    commands: int
    responses: int
    slots: int  #: Of the rings of commands and responses, a power of two.
    first: int = 0  #: Sequence number of the first operation.
    start: int = 0  #: Cycle of the first request for a command.
    poll: int = 0  #: Minimum cycles from the read of an unwritten command to the next.
    #: The launch ends at a stop record behind the last command, not after a number of operations.
    endless: bool = False


class Trace(NamedTuple):
    """A launch's bursts in order of cycles, and the cycles of its actions."""

    accesses: list[Burst]
    times: Admission


class _BurstWriter:
    """Writes blocks as bursts: an address when the block is ready, beats no earlier than their address."""

    def __init__(self, host: HostTimes, port: str, accesses: list[Burst]) -> None:
        self._host, self._port, self._accesses = host, port, accesses
        self._address = self._beat = -1  # cycles of the last handshakes

    def write(self, valid: int, address: int, size: int) -> tuple[int, int]:
        """Return the cycles of the handshakes of the last beat and of the last answer."""
        answer = 0
        for start, bytes_ in bursts(address, size):
            valid = max(valid, self._address + 1)
            self._address = self._host.address_handshake(self._port, True, valid)
            self._accesses.append(Burst(self._address, self._port, True, start, bytes_))
            for beat in range(bytes_ // BEAT_BYTES):
                ready_from = max(self._beat + 1, valid if beat == 0 else 0)
                self._beat = self._host.write_handshake(self._port, ready_from)
            answer = self._host.write_answer(self._port, self._address, self._beat)
        return self._beat, answer


class _BurstReader:
    """Reads blocks as bursts."""

    def __init__(self, host: HostTimes, port: str, accesses: list[Burst]) -> None:
        self._host, self._port, self._accesses = host, port, accesses
        self._address = -1

    def read(self, valid: int, address: int, size: int) -> list[tuple[int, int]]:
        """Return for each beat the cycles of its burst's address and of itself."""
        beats = []
        for start, bytes_ in bursts(address, size):
            self._address = self._host.address_handshake(self._port, False, max(valid, self._address + 1))
            self._accesses.append(Burst(self._address, self._port, False, start, bytes_))
            cycles = self._host.read_handshakes(self._port, self._address, bytes_ // BEAT_BYTES)
            beats += [(self._address, cycle) for cycle in cycles]
        return beats


def bursts(address: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut a block at multiples of `BURST_BYTES`: yield addresses and bytes."""
    end = address + size
    while address < end:
        stop = min(end, (address // BURST_BYTES + 1) * BURST_BYTES)
        yield address, stop - address
        address = stop


def _following(config: OramConfig, launch: BusLaunch, number: int) -> int:
    """Return the number of records behind ``number`` in its group, which ends with the ring."""
    slot = (launch.first + number) % launch.slots
    return -(slot + 1) % min(config.ring_group, launch.slots)


class _CommandRing:
    """Prefetches commands; an unwritten one is read again, alone, until it is written."""

    def __init__(
        self,
        timing: Latencies,
        launch: BusLaunch,
        host: HostTimes,
        reader: _BurstReader,
        times: Admission,
        operations: int,
    ) -> None:
        self._timing, self._launch, self._host, self._reader = timing, launch, host, reader
        self._config, self._accepted = times.config, times.accepted
        self._operations = operations
        self._next = 0  # number of the first record not yet requested
        self._earliest = launch.start  # cycle of its request, if there is room
        self._beats: deque[tuple[int, int]] = deque()  # of requested records: cycles of address and beat
        self._seen = -1  # cycle in which the awaited record was compared

    def arrival(self, number: int) -> int:
        """Return the cycle of the last beat of command ``number``; earlier ones are accepted."""
        seen = self._timing.command_seen
        if number == self._next:
            self._ahead(None)
        found, last = self._await(number)
        if not found:
            self._ahead(self._seen)
        while not found:
            dropped = max([last, *(cycle for _, cycle in self._beats)]) + seen
            self._beats.clear()
            self._next = number
            self._ask(max(self._seen + self._launch.poll, dropped) + self._timing.command_return, 1)
            found, last = self._await(number)
            self._earliest = last + seen + self._timing.command_spacing  # the next request, once it matched
        return last

    def end(self) -> None:
        """Read the stop record of an endless launch, and records prefetched before it arrived."""
        self.arrival(self._operations)
        self._ahead(self._seen)

    def _ahead(self, until: int | None) -> None:
        """Make the next request, or all requests up to cycle ``until``."""
        while self._launch.endless or self._next < self._operations:
            following = _following(self._config, self._launch, self._next)
            if not self._launch.endless:
                following = min(following, self._operations - self._next - 1)
            room = self._room(self._next + following)
            if room is None:
                break
            request = max(self._earliest, room)
            if until is not None and request > until:
                break
            self._ask(request, following + 1)
            if until is None:
                break

    def _room(self, number: int) -> int | None:
        """Return the cycle from which there is room: when an earlier command has left for the opener."""
        holder = number - self._config.command_records
        if holder < 0:
            return self._launch.start
        if holder >= len(self._accepted):
            return None
        return self._accepted[holder] + self._config.command_bytes // BEAT_BYTES + 2

    def _ask(self, request: int, count: int) -> None:
        """Request ``count`` records from the next one on."""
        size = self._config.command_bytes
        slot = (self._launch.first + self._next) % self._launch.slots
        valid = request + self._timing.command_address
        self._beats.extend(self._reader.read(valid, self._launch.commands + slot * size, count * size))
        self._next += count
        self._earliest = request + self._timing.command_spacing

    def _await(self, number: int) -> tuple[bool, int]:
        """Take the next command: return whether it is written, and the cycle of its last beat."""
        beats = [self._beats.popleft() for _ in range(self._config.command_bytes // BEAT_BYTES)]
        accepted, first = beats[0]
        self._seen = first + self._timing.command_seen
        return self._host.has_command(number, accepted), beats[-1][1]


class _ResponseRing:
    """Writes responses at the end of a group, after the last command, or after the longest wait."""

    def __init__(self, timing: Latencies, launch: BusLaunch, writer: _BurstWriter, times: Admission) -> None:
        self._timing, self._launch, self._writer, self._times = timing, launch, writer, times
        self._waiting: list[tuple[int, int]] = []  # numbers, and cycles of their last beats

    def put(self, number: int, last: int) -> None:
        """Add response ``number``, with its last beat in cycle ``last``."""
        if self._waiting and last > self._due:
            self._go(self._due)
        self._waiting.append((number, last))
        if not _following(self._times.config, self._launch, number):
            self._go(last)

    def proceed(self, arrival: int) -> None:
        """Advance to the arrival of the next command, or, without one, to the end."""
        if self._waiting and self._waiting[-1][1] < arrival:
            self._go(self._waiting[-1][1])

    @property
    def _due(self) -> int:
        return self._waiting[0][1] + self._timing.response_wait

    def _go(self, cycle: int) -> None:
        """Write the waiting responses."""
        size, count = self._times.config.command_bytes, len(self._waiting)
        slot = (self._launch.first + self._waiting[0][0]) % self._launch.slots
        address = self._launch.responses + slot * size
        _, answered = self._writer.write(cycle + self._timing.response_address, address, count * size)
        written = self._times.response_written  # one a cycle
        for _ in range(count):
            before = written[-1] if written else -1
            written.append(max(answered + self._timing.response_written, before + 1))
        self._waiting.clear()


def simulate(
    config: OramConfig,
    timing: Latencies,
    launch: BusLaunch,
    host: HostTimes,
    touched: Sequence[Sequence[int | None]],
) -> Trace:
    """Return the trace of a launch whose operations touch pages or None, in order.

    Every operation has `OramConfig.items` touches.
    """
    accesses: list[Burst] = []
    times = Admission(config, timing.touches)
    commands = _CommandRing(timing, launch, host, _BurstReader(host, RING, accesses), times, len(touched))
    reader = _BurstReader(host, PAGES, accesses)
    writer = _BurstWriter(host, PAGES, accesses)
    responses = _ResponseRing(timing, launch, _BurstWriter(host, RING, accesses), times)
    for n, pages in enumerate(touched):
        if len(pages) != config.items:
            raise ValueError(f"operation {n} has {len(pages)} touches instead of {config.items}")
        times.command_arrived.append(commands.arrival(n) + timing.command_arrived)
        responses.proceed(times.command_arrived[n])
        times.accept()
        for page in pages:
            times.issue(page)
            if page is None:
                times.admit()
                continue
            address = launch.pages + page * config.page_bytes
            issued = times.issued[-1]
            _, last = reader.read(issued + timing.read_address, address, config.page_bytes)[-1]
            times.page_arrived.append(last + timing.page_arrived)
            times.admit()
            sealed = times.admitted[-1] + timing.seal
            left, answered = writer.write(sealed + timing.write_address, address, config.page_bytes)
            times.page_left.append(left + timing.page_left)
            times.page_written.append(answered + timing.page_written)
            times.release()
        responses.put(n, times.admitted[-1] + timing.response)
    responses.proceed(sys.maxsize)
    if launch.endless:
        commands.end()
    return Trace(sorted(accesses), times)
