"""The bus trace as a function of what is public: revealed pages, the host, constants of the engine.

Nothing here knows of keys, values, kinds of operations, or of what HBM does.  `Gates` say when commands are
accepted, and touches are issued and turn; what the bus shows of it follows after constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hw.oram.config import BEAT_BYTES, OramConfig
from sim.golden.oram.gates import Gates
from sim.golden.oram.hosts import Host

#: Bursts do not cross multiples of as many bytes.
BURST_BYTES = 1024
#: Ports: pages, commands and responses.
PAGES, RING = "host0", "host1"


class Access(NamedTuple):
    """A burst: cycle of its address' handshake, port, whether it writes, address, bytes."""

    cycle: int
    port: str
    write: bool
    address: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Constants of the engine, in cycles.

    Members
    -------
    position_cycles, touch_cycles
        Deadlines of the gates: those of the configuration, and constants of what is on the way besides HBM.
    command_there, page_there, page_left, page_written, response_written
        From what the bus shows to the pulse at the gates: after the last beat of a command, of a page that is
        read, of a page that is written; after the answer to a page's write, and to a response's.
    read_address, write_address
        From issue to the address of the page's read, and from the sealed page's last beat to that of its
        write.
    seal, response
        From turn to the last beat of the sealed page, and of the operation's response.
    command_address
        From the request of a command to its address on the bus.
    command_seen
        From the last beat of a command on the bus until it is compared with what is expected.
    """

    position_cycles: int
    touch_cycles: int
    command_there: int = 3
    page_there: int = 1
    page_left: int = 1
    page_written: int = 1
    response_written: int = 1
    read_address: int = 8
    write_address: int = 3
    seal: int
    response: int
    command_address: int = 7
    command_seen: int = 2


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Arguments of a launch that a bus sees.

    Members
    -------
    pages, commands, responses
        Addresses.
    slots
        Of the rings of commands and responses, a power of two.
    first
        Sequence number of the first operation.
    start
        Cycle of the first request for a command.
    poll
        Cycles from a command that was not written yet to the next look at it, at least.
    endless
        The launch ends by a record that says so, behind the last command, not after as many operations.
    """

    pages: int
    commands: int
    responses: int
    slots: int
    first: int = 0
    start: int = 0
    poll: int = 0
    endless: bool = False


class Trace(NamedTuple):
    """What happens in a launch: on the bus, in order of cycles, and at the gates."""

    accesses: list[Access]
    gates: Gates


class _Writer:
    """Writes blocks as bursts: addresses when the block is there, beats no earlier than their address."""

    def __init__(self, host: Host, port: str, accesses: list[Access]) -> None:
        self._host, self._port, self._accesses = host, port, accesses
        self._address = self._beat = -1  # cycles of the last handshakes

    def write(self, valid: int, address: int, size: int) -> tuple[int, int]:
        """Give the cycles of the handshakes of the last beat and of the last answer."""
        answer = 0
        for start, bytes_ in bursts(address, size):
            valid = max(valid, self._address + 1)
            self._address = self._host.take_address(self._port, True, valid)
            self._accesses.append(Access(self._address, self._port, True, start, bytes_))
            for beat in range(bytes_ // BEAT_BYTES):
                ready_from = max(self._beat + 1, valid if beat == 0 else 0)
                self._beat = self._host.take_data(self._port, ready_from)
            answer = self._host.answer(self._port, self._address, self._beat)
        return self._beat, answer


class _Reader:
    """Reads blocks as bursts."""

    def __init__(self, host: Host, port: str, accesses: list[Access]) -> None:
        self._host, self._port, self._accesses = host, port, accesses
        self._address = -1

    def read(self, valid: int, address: int, size: int) -> tuple[int, int, int]:
        """Give the cycles of the handshakes of the first address, the first beat and the last beat."""
        found: tuple[int, int, int] | None = None
        for start, bytes_ in bursts(address, size):
            self._address = self._host.take_address(self._port, False, max(valid, self._address + 1))
            self._accesses.append(Access(self._address, self._port, False, start, bytes_))
            first, last = self._host.give_data(self._port, self._address, bytes_ // BEAT_BYTES)
            found = (found[0], found[1], last) if found else (self._address, first, last)
        assert found is not None
        return found


def bursts(address: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut a block at multiples of `BURST_BYTES`: give addresses and bytes."""
    end = address + size
    while address < end:
        stop = min(end, (address // BURST_BYTES + 1) * BURST_BYTES)
        yield address, stop - address
        address = stop


class _Commands:
    """Requests commands ahead; one that is not written is asked for again, alone, until it is."""

    def __init__(
        self, timing: Timing, launch: Launch, host: Host, reader: _Reader, gates: Gates, operations: int
    ) -> None:
        self._timing, self._launch, self._host, self._reader = timing, launch, host, reader
        self._config, self._accepted = gates.config, gates.accepted
        self._operations = operations
        self._request = launch.start - 1  # cycle of the last
        self._seen = -1  # cycle in which the one that is next was compared

    def arrival(self, number: int) -> int:
        """Give the cycle of the last beat of command ``number``, whose forerunners were accepted."""
        self._request = max(self._request + 1, self._room(number))
        found, last = self._await(number)
        if not found:
            last = max(last, self._read_ahead(number))
        while not found:
            dropped = last + self._timing.command_seen
            self._request = max(self._seen + self._launch.poll, dropped) + 2
            found, last = self._await(number)
            if found:  # others are asked for once it is known
                self._request = last + self._timing.command_seen
        return last

    def end(self) -> None:
        """Read the record that ends an endless launch, and what was asked for before it came."""
        self.arrival(self._operations)
        self._read_ahead(self._operations)

    def _read_ahead(self, number: int) -> int:
        """Read commands behind ``number`` until that is seen not to be one; give the last beat's cycle."""
        last = -1
        most = len(self._accepted) + self._config.command_records  # there is no room for others
        for ahead in range(number + 1, most if self._launch.endless else min(most, self._operations)):
            request = max(self._request + 1, self._room(ahead))
            if request > self._seen:
                break
            self._request = request
            _, _, last = self._read(ahead)
        return last

    def _room(self, number: int) -> int:
        """Give the cycle from which there is room: when the command so many before has gone to be opened."""
        holder = number - self._config.command_records
        beats = self._config.command_bytes // BEAT_BYTES
        return self._accepted[holder] + beats + 1 if holder >= 0 else self._launch.start

    def _read(self, number: int) -> tuple[int, int, int]:
        size = self._config.command_bytes
        slot = (self._launch.first + number) % self._launch.slots
        valid = self._request + self._timing.command_address
        return self._reader.read(valid, self._launch.commands + slot * size, size)

    def _await(self, number: int) -> tuple[bool, int]:
        """Read the command that is next: tell whether it is written, and the cycle of its last beat."""
        accepted, first, last = self._read(number)
        self._seen = first + self._timing.command_seen
        return self._host.has_command(number, accepted), last


def simulate(
    config: OramConfig, timing: Timing, launch: Launch, host: Host, touched: Sequence[Sequence[int | None]]
) -> Trace:
    """Give the trace of a launch of operations that touch, in order, pages or none.

    Every operation has `OramConfig.items` touches.
    """
    accesses: list[Access] = []
    gates = Gates(config=config, position_cycles=timing.position_cycles, touch_cycles=timing.touch_cycles)
    commands = _Commands(timing, launch, host, _Reader(host, RING, accesses), gates, len(touched))
    reader = _Reader(host, PAGES, accesses)
    writer, responses = (_Writer(host, port, accesses) for port in (PAGES, RING))
    for n, pages in enumerate(touched):
        if len(pages) != config.items:
            raise ValueError(f"operation {n} has {len(pages)} touches instead of {config.items}")
        gates.command_there.append(commands.arrival(n) + timing.command_there)
        gates.accept()
        for page in pages:
            issued = gates.issue(page)
            if page is None:
                gates.turn()
                continue
            address = launch.pages + page * config.page_bytes
            _, _, there = reader.read(issued + timing.read_address, address, config.page_bytes)
            gates.page_there.append(there + timing.page_there)
            sealed = gates.turn() + timing.seal
            left, answered = writer.write(sealed + timing.write_address, address, config.page_bytes)
            gates.page_left.append(left + timing.page_left)
            gates.page_written.append(answered + timing.page_written)
            gates.release()
        slot = (launch.first + n) % launch.slots
        valid = gates.turned[-1] + timing.response + timing.write_address
        _, answered = responses.write(
            valid, launch.responses + slot * config.command_bytes, config.command_bytes
        )
        gates.response_written.append(answered + timing.response_written)
    if launch.endless:
        commands.end()
    return Trace(sorted(accesses), gates)
