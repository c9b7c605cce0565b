"""An AXI subordinate for Amaranth's simulator: memory, random stalls and latencies, and protocol checks.

It is the naive counterpart of the DMAs: a dictionary of bytes, one queue a channel.  Memory that nobody wrote
has content all the same, a function of the address (`untouched`), so that a read of the wrong place shows.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.support.gateware.streams import Testbench, hash_seed, set_all


class ProtocolError(AssertionError):
    """The manager broke a rule of AXI, or a stricter promise of the DMAs."""


def untouched(address: int) -> int:
    """Return the byte that memory holds before anybody writes it."""
    return ((address * 0x9E3779B1) >> 11) & 0xFF


@dataclass
class AxiMemory:
    """Memory behind one port; either half of the port may be missing.

    Parameters
    ----------
    port
        An interface with the members of `axi.ReadSignature`, `axi.WriteSignature` or both.
    stall
        Probability, each cycle, that a channel pauses: ready is low, or no next beat or response is offered.
    latency
        Least and greatest cycles from an address (for a write: its last beat) to the first beat or response.
    faulty
        Addresses; a beat or burst that holds one of them is answered with SLVERR.
    address_after_data
        Accept a write address only when its last beat has come, as AXI allows a subordinate to.
    overtaking
        Beats of reads with different identifiers come in any order.

    Members
    -------
    bytes : dict of int to int
        What was written.
    reads, writes : list of (address, beats)
        Bursts in order.
    cycles : dict of str to list of int
        Cycle of every transfer, by channel.
    under_way : set of str
        Ways, "read" and "write", in which a burst is, or data without one are.
    """

    port: Any
    stall: float = 0.0
    latency: tuple[int, int] = (1, 12)
    seed: int = 0
    burst_beats: int = 16
    faulty: frozenset[int] = frozenset()
    address_after_data: bool = False
    overtaking: bool = False
    bytes: dict[int, int] = field(default_factory=dict)
    reads: list[tuple[int, int]] = field(default_factory=list)
    writes: list[tuple[int, int]] = field(default_factory=list)
    cycles: dict[str, list[int]] = field(default_factory=lambda: {c: [] for c in ("ar", "r", "aw", "w", "b")})

    under_way: set[str] = field(default_factory=set)
    _refused: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.beat_bytes = self.port.signature.beat_bytes

    def content(self, address: int, length: int) -> bytes:
        """Return the bytes from ``address`` on."""
        return bytes(self.bytes.get(a, untouched(a)) for a in range(address, address + length))

    def refuse(self, **bursts: int) -> None:
        """Refuse the burst of the given number, of ``read`` or ``write`` or both.

        A read's middle beat has SLVERR and wrong data.  A write is lost and has DECERR.
        """
        self._refused = dict(bursts)

    def _is_refused(self, way: str) -> bool:
        if way not in self._refused:
            return False
        self._refused[way] -= 1
        return self._refused[way] == -1

    def _note(self, way: str, under_way: bool) -> None:
        (self.under_way.add if under_way else self.under_way.discard)(way)

    def testbenches(self) -> list[Testbench]:
        """Return the background testbenches for the halves that the port has."""
        members = self.port.signature.members
        return [
            bench
            for member, bench in (("arvalid", self._serve_reads), ("awvalid", self._serve_writes))
            if member in members
        ]

    def _check_burst(self, address: int, beats: int) -> None:
        last = address + beats * self.beat_bytes - 1
        if beats > self.burst_beats:
            raise ProtocolError(f"burst of {beats} beats at {address:#x}")
        if address // 4096 != last // 4096:
            raise ProtocolError(f"burst at {address:#x} of {beats} beats crosses 4 KiB")
        if address % self.beat_bytes:
            raise ProtocolError(f"burst at unaligned address {address:#x}")

    def _response(self, addresses: Iterable[int]) -> int:
        return 2 if any(address in self.faulty for address in addresses) else 0

    async def _serve_reads(self, ctx: Any) -> None:
        rng = random.Random(hash_seed(self.seed, "read"))
        port, size = self.port, self.beat_bytes
        # Earliest cycle, address, last, identifier, refused.
        beats: list[tuple[int, int, bool, int, bool]] = []
        stable = Stable("ar")
        cycle, offered, chosen = 0, False, 0
        tick = ctx.tick().sample(port.arvalid, port.araddr, port.arlen, port.arid, port.rready)
        while True:
            arready = rng.random() >= self.stall
            driven = [(port.arready, arready)]
            if self.overtaking and beats and not offered:
                oldest = {beat[3]: at for at, beat in reversed([*enumerate(beats)])}
                chosen = rng.choice([*oldest.values()])
            if not offered and beats and beats[chosen][0] <= cycle and rng.random() >= self.stall:
                _, address, last, identifier, refused = beats[chosen]
                content = int.from_bytes(self.content(address, size), "little")
                driven += [
                    (port.rdata, ~content if refused else content),
                    (port.rresp, 2 if refused else self._response(range(address, address + size))),
                    (port.rlast, last),
                    (port.rid, identifier),
                ]
                offered = True
            set_all(ctx, [*driven, (port.rvalid, offered)])
            _, _, valid, address, length, identifier, rready = await tick
            stable.see(valid, arready, (address, length, identifier))
            if valid and arready:
                self.cycles["ar"].append(cycle)
                count = length + 1
                self._check_burst(address, count)
                self.reads.append((address, count))
                due = cycle + rng.randint(*self.latency)
                middle = length // 2 if self._is_refused("read") else None
                beats.extend(
                    (due, address + size * n, n == length, identifier, n == middle) for n in range(count)
                )
            if offered and rready:
                self.cycles["r"].append(cycle)
                del beats[chosen]
                offered = False
            self._note("read", bool(beats))
            cycle += 1

    async def _serve_writes(self, ctx: Any) -> None:
        rng = random.Random(hash_seed(self.seed, "write"))
        port = self.port
        # Accepted, data to come or not taken up yet: address, beats, refused.
        addresses: deque[tuple[int, int, bool]] = deque()
        data: deque[list[tuple[int, int]]] = deque([[]])  # beats by burst, the last burst still open
        responses: deque[tuple[int, int]] = deque()  # earliest cycle, response
        stable_aw, stable_w = Stable("aw"), Stable("w")
        cycle, offered = 0, False
        tick = ctx.tick().sample(
            port.awvalid,
            port.awaddr,
            port.awlen,
            port.wvalid,
            port.wdata,
            port.wstrb,
            port.wlast,
            port.bready,
        )
        while True:
            awready = rng.random() >= self.stall
            if self.address_after_data:
                awready = awready and len(data) - 1 > len(addresses)
            wready = rng.random() >= self.stall
            driven = [(port.awready, awready), (port.wready, wready)]
            if not offered and responses and responses[0][0] <= cycle and rng.random() >= self.stall:
                driven.append((port.bresp, responses[0][1]))
                offered = True
            set_all(ctx, [*driven, (port.bvalid, offered)])
            _, _, awvalid, address, length, wvalid, word, strobes, last, bready = await tick
            stable_aw.see(awvalid, awready, (address, length))
            stable_w.see(wvalid, wready, (word, strobes, last))
            if wvalid and len(data) > len(addresses) + awvalid:
                raise ProtocolError("data on the bus before their address")
            if awvalid and awready:
                self.cycles["aw"].append(cycle)
                self._check_burst(address, length + 1)
                self.writes.append((address, length + 1))
                addresses.append((address, length + 1, self._is_refused("write")))
            if wvalid and wready:
                self.cycles["w"].append(cycle)
                data[-1].append((word, strobes))
                if last:
                    data.append([])
            if addresses and len(data) > 1:
                address, count, refused = addresses.popleft()
                burst = data.popleft()
                if len(burst) != count:
                    raise ProtocolError(f"{len(burst)} beats for the {count} announced at {address:#x}")
                response = 3 if refused else self._store(address, burst)
                responses.append((cycle + rng.randint(*self.latency), response))
            if offered and bready:
                self.cycles["b"].append(cycle)
                responses.popleft()
                offered = False
            self._note("write", bool(responses or addresses or len(data) > 1 or data[0]))
            cycle += 1

    def _store(self, address: int, burst: list[tuple[int, int]]) -> int:
        touched = range(address, address + len(burst) * self.beat_bytes)
        for word, strobes in burst:
            for lane in range(self.beat_bytes):
                if strobes >> lane & 1:
                    self.bytes[address + lane] = word >> (8 * lane) & 0xFF
            address += self.beat_bytes
        return self._response(touched)


@dataclass
class Stable:
    """The rule of every channel: valid stays up, and the payload unchanged, until the transfer."""

    channel: str
    waiting: tuple[int, ...] | None = None

    def see(self, valid: int, ready: int, payload: tuple[int, ...]) -> None:
        """Take note of one cycle."""
        if self.waiting is not None and (not valid or payload != self.waiting):
            raise ProtocolError(f"{self.channel} changed before its transfer")
        self.waiting = payload if valid and not ready else None
