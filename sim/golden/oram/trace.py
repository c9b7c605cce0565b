"""The bus trace as a function of what is public: revealed pages, the host, constants of the engine.

Nothing here knows of keys, values, kinds of operations, or of what HBM does.  A touch is issued in order
(gate 1), waits for its page, turns (gate 2), and its page is written back: see `simulate` for when.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hw.oram.config import BEAT_BYTES, OramConfig

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


class Host(Protocol):
    """What the host's memory does, by port; asked in the order of bursts on each channel of a port."""

    def take_address(self, port: str, write: bool, valid: int) -> int:
        """Give the cycle of the handshake of an address that is valid from cycle ``valid`` on."""

    def give_data(self, port: str, accepted: int, beats: int) -> tuple[int, int]:
        """Give the cycles of the handshakes of a read burst's first and last beat."""

    def take_data(self, port: str, valid: int) -> int:
        """Give the cycle of the handshake of a beat that is valid from cycle ``valid`` on."""

    def answer(self, port: str, accepted: int, last: int) -> int:
        """Give the cycle of the handshake of a write burst's response."""

    def has_command(self, number: int, accepted: int) -> bool:
        """Tell whether a read of command ``number`` finds it written."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Constants of the engine, in cycles.

    Members
    -------
    arrived
        From the last beat of a command on the bus to its acceptance, at least.
    page_there
        From the last beat of a page on the bus to its turn, at least.
    left, written, answered
        Until room in the write buffer is seen again, after the last beat of a page; until room for a response
        is, after the answer to its write; until a page may leave the scoreboard, after the answer to its.
    free
        Until a page that left the scoreboard may be issued again.
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

    arrived: int = 4
    page_there: int = 2
    left: int = 2
    written: int = 2
    answered: int = 2
    free: int = 3
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


@dataclass
class Trace:
    """What happens in a launch, as lists over operations, touches, or touches with a page.

    Members
    -------
    accesses
        On the bus, in order of cycles.
    arrived, accepted
        By operation: the last beat of its command on the bus; c(n) and a(n).
    issued, turned
        By touch: i(j) and q(j).
    released
        By touch with a page: r(j).
    """

    accesses: list[Access] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    issued: list[int] = field(default_factory=list)
    turned: list[int] = field(default_factory=list)
    released: list[int] = field(default_factory=list)


class _Writer:
    """Writes blocks as bursts: addresses when the block is there, beats no earlier than their address."""

    def __init__(self, host: Host, port: str, trace: Trace) -> None:
        self._host, self._port, self._trace = host, port, trace
        self._address = self._beat = -1  # cycles of the last handshakes
        #: Of each block, the cycles of its last beat's handshake and of its last answer's.
        self.left: list[int] = []
        self.answered: list[int] = []

    def write(self, valid: int, address: int, size: int) -> None:
        answer = 0
        for start, bytes_ in bursts(address, size):
            valid = max(valid, self._address + 1)
            self._address = self._host.take_address(self._port, True, valid)
            self._trace.accesses.append(Access(self._address, self._port, True, start, bytes_))
            for beat in range(bytes_ // BEAT_BYTES):
                ready_from = max(self._beat + 1, valid if beat == 0 else 0)
                self._beat = self._host.take_data(self._port, ready_from)
            answer = self._host.answer(self._port, self._address, self._beat)
        self.left.append(self._beat)
        self.answered.append(answer)


class _Reader:
    """Reads blocks as bursts."""

    def __init__(self, host: Host, port: str, trace: Trace) -> None:
        self._host, self._port, self._trace = host, port, trace
        self._address = -1

    def read(self, valid: int, address: int, size: int) -> tuple[int, int, int]:
        """Give the cycles of the handshakes of the first address, the first beat and the last beat."""
        found: tuple[int, int, int] | None = None
        for start, bytes_ in bursts(address, size):
            self._address = self._host.take_address(self._port, False, max(valid, self._address + 1))
            self._trace.accesses.append(Access(self._address, self._port, False, start, bytes_))
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
        self, config: OramConfig, timing: Timing, launch: Launch, host: Host, trace: Trace, operations: int
    ) -> None:
        self._config, self._timing, self._launch, self._host = config, timing, launch, host
        self._reader, self._trace = _Reader(host, RING, trace), trace
        self._beats = config.command_bytes // BEAT_BYTES
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
        most = len(self._trace.accepted) + self._config.command_records  # there is no room for others
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
        return self._trace.accepted[holder] + self._beats + 1 if holder >= 0 else self._launch.start

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

    Every operation has `OramConfig.items` touches, and touches are ``item_cycles`` apart.  With a(n) the
    acceptance of operation n, i(j) the issue of touch j, q(j) its turn and r(j) the release of its page:

    * a(n) >= a(n-1) + interval; at most ``accepted`` operations are accepted and not issued;
    * i(j) >= a(n) + position_cycles; at most ``inflight`` operations are issued and have not turned, at most
      ``scoreboard_pages`` pages are issued and not released, and no page is issued twice before its release;
    * q(j) >= i(j) + touch_cycles; its page is there; at most ``write_pages`` pages have turned and not left,
      at most ``response_records`` responses are not answered;
    * r(j) >= q(j) + settle_cycles, and its write is answered.
    """
    trace = Trace()
    commands = _Commands(config, timing, launch, host, trace, len(touched))
    reader = _Reader(host, PAGES, trace)
    writer, responses = _Writer(host, PAGES, trace), _Writer(host, RING, trace)
    items, step = config.items, config.item_cycles
    a, i, q, r = trace.accepted, trace.issued, trace.turned, trace.released
    last_release: dict[int, int] = {}
    for n, pages in enumerate(touched):
        if len(pages) != items:
            raise ValueError(f"operation {n} has {len(pages)} touches instead of {items}")
        trace.arrived.append(commands.arrival(n))
        a.append(
            max(
                trace.arrived[n] + timing.arrived,
                a[n - 1] + config.interval if n else 0,
                i[(n - config.accepted) * items] + 2 if n >= config.accepted else 0,
            )
        )
        for at, page in enumerate(pages):
            paged = len(r)  # touches with a page before this one
            issue = i[-1] + step if i else 0
            if at == 0:
                issue = max(issue, a[n] + config.position_cycles)
                if n >= config.inflight:
                    issue = max(issue, q[(n - config.inflight + 1) * items - 1] + 2)
            if paged >= config.scoreboard_pages:
                issue = max(issue, r[paged - config.scoreboard_pages] + 1)
            if page is not None:
                issue = max(issue, last_release.get(page, -timing.free) + timing.free)
            i.append(issue)
            turn = max(issue + config.touch_cycles, q[-1] + step if q else 0)
            if paged >= config.write_pages:
                turn = max(turn, writer.left[paged - config.write_pages] + timing.left)
            if at == items - 1 and n >= config.response_records:
                turn = max(turn, responses.answered[n - config.response_records] + timing.written)
            if page is not None:
                address = launch.pages + page * config.page_bytes
                _, _, there = reader.read(issue + timing.read_address, address, config.page_bytes)
                turn = max(turn, there + timing.page_there)
                writer.write(turn + timing.seal + timing.write_address, address, config.page_bytes)
                release = max(turn + config.settle_cycles, writer.answered[-1] + timing.answered)
                r.append(max(release, r[-1] + 1) if r else release)
                last_release[page] = r[-1]
            q.append(turn)
        slot = (launch.first + n) % launch.slots
        address = launch.responses + slot * config.command_bytes
        responses.write(q[-1] + timing.response + timing.write_address, address, config.command_bytes)
    if launch.endless:
        commands.end()
    trace.accesses.sort()
    return trace


@dataclass
class SteadyHost:
    """A host that takes everything at once, and gives the beats of a port one a cycle.

    Members
    -------
    read_latency, write_latency
        Cycles from a read's address to its first beat, from a write's last beat to its answer.
    commands
        Cycle from which a read finds each command.
    """

    read_latency: int = 150
    write_latency: int = 200
    commands: Sequence[int] = ()
    _busy: dict[str, int] = field(default_factory=dict)

    def take_address(self, port: str, write: bool, valid: int) -> int:
        """At once."""
        return valid

    def give_data(self, port: str, accepted: int, beats: int) -> tuple[int, int]:
        """After the latency, and after what was asked for before."""
        first = max(accepted + self.read_latency, self._busy.get(port, -1) + 1)
        self._busy[port] = first + beats - 1
        return first, first + beats - 1

    def take_data(self, port: str, valid: int) -> int:
        """At once."""
        return valid

    def answer(self, port: str, accepted: int, last: int) -> int:
        """After the latency."""
        return max(accepted, last) + self.write_latency

    def has_command(self, number: int, accepted: int) -> bool:
        """Tell whether the command was written by then, at once if nothing is said of it."""
        return number >= len(self.commands) or self.commands[number] <= accepted


@dataclass
class RecordedHost:
    """A host as it was seen on the bus: what it did, without what the engine did.

    Members
    -------
    address_waits
        By port and whether it writes: cycles each address was valid before its handshake.
    data
        By port: cycles of the handshakes of read bursts' first and last beats.
    beat_waits
        By port: cycles each written beat was valid before its handshake.
    answers
        By port: cycles of the handshakes of write responses.
    found
        For each read of a command whether it was written, in order.
    """

    address_waits: dict[tuple[str, bool], Iterator[int]]
    data: dict[str, Iterator[tuple[int, int]]]
    beat_waits: dict[str, Iterator[int]]
    answers: dict[str, Iterator[int]]
    found: Iterator[bool]

    def take_address(self, port: str, write: bool, valid: int) -> int:
        """As long after it became valid as it was."""
        return valid + next(self.address_waits[port, write])

    def give_data(self, port: str, accepted: int, beats: int) -> tuple[int, int]:
        """When they were."""
        return next(self.data[port])

    def take_data(self, port: str, valid: int) -> int:
        """As long after it became valid as it was."""
        return valid + next(self.beat_waits[port])

    def answer(self, port: str, accepted: int, last: int) -> int:
        """When it was."""
        return next(self.answers[port])

    def has_command(self, number: int, accepted: int) -> bool:
        """As it was."""
        return next(self.found)
