"""AXI managers in Python for a memory model without a simulator: to measure, and to do anything legal."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

import numpy as np

from hw.board.memory_timing import HbmTiming
from sim.memory.config import MemoryConfig, Timing
from tests.support.memory.native import NativeMemory, PortAnswer, PortDriver


def config(timing: Timing, *, ports: int = 1, mhz: float = 450.0, channels: int = 32, **more) -> MemoryConfig:
    """A memory of small channels for a test; ports sit beside channels 0, 1, 2..."""
    more.setdefault("port_channels", tuple(port % channels for port in range(ports)))
    return MemoryConfig(
        name="memory", timing=timing, channels=channels, channel_bytes=2**24, kernel_clock_mhz=mhz, **more
    )


def bare_hbm(**more) -> HbmTiming:
    """HBM without a platform's interconnect, and without refresh unless given."""
    return HbmTiming(
        **({"fabric_request_ns": 0.0, "fabric_response_ns": 0.0, "refresh_interval_ck": 10**9} | more)
    )


def read_all(
    memory: NativeMemory,
    addresses: list[int],
    *,
    port: int = 0,
    beats: int = 1,
    ids=(0,),
    limit: int = 100_000,
) -> tuple[list[int], list[int]]:
    """Read every address at full speed; return the edges of address handshakes and of data beats."""
    drive = memory.drive[port]
    asked: list[int] = []
    got: list[int] = []
    expected = len(addresses) * beats
    while len(got) < expected:
        drive.arvalid = int(len(asked) < len(addresses))
        if drive.arvalid:
            drive.araddr, drive.arlen = addresses[len(asked)], beats - 1
            drive.arid = ids[len(asked) % len(ids)]
        seen = memory.answer[port]
        memory.cycle()
        if drive.arvalid and seen.arready:
            asked.append(memory.edge - 1)
        if seen.rvalid and drive.rready:
            got.append(memory.edge - 1)
        assert memory.edge < limit, f"{len(got)} of {expected} beats after {memory.edge} edges"
    drive.arvalid = 0
    return asked, got


def write_all(
    memory: NativeMemory, addresses: list[int], *, port: int = 0, beats: int = 1, limit: int = 100_000
) -> tuple[list[int], list[int]]:
    """Write every address at full speed; return the edges of last data and of responses."""
    drive = memory.drive[port]
    sent_addresses = sent_beats = 0
    last: list[int] = []
    answered: list[int] = []
    while len(answered) < len(addresses):
        drive.awvalid = int(sent_addresses < len(addresses))
        if drive.awvalid:
            drive.awaddr, drive.awlen = addresses[sent_addresses], beats - 1
        drive.wvalid = int(sent_beats < len(addresses) * beats)
        drive.wlast = int(sent_beats % beats == beats - 1)
        drive.wdata = sent_beats
        seen = memory.answer[port]
        memory.cycle()
        if drive.awvalid and seen.awready:
            sent_addresses += 1
        if drive.wvalid and seen.wready:
            sent_beats += 1
            if drive.wlast:
                last.append(memory.edge - 1)
        if seen.bvalid:
            answered.append(memory.edge - 1)
        assert memory.edge < limit, f"{len(answered)} of {len(addresses)} responses after {memory.edge} edges"
    drive.awvalid = drive.wvalid = 0
    return last, answered


@dataclass
class RandomManager:
    """Random reads and writes that obey AXI; every byte read is checked against a plain array.

    A region with an unfinished write is neither read nor written: such a read is undefined.  Identifiers,
    lengths, strobes and waits on every channel are free.
    """

    memory: NativeMemory
    port: int
    window: range
    seed: int
    bursts: int
    max_beats: int = 16
    id_bits: int = 2
    waits: float = 0.3

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.beat = self.memory.data_bits // 8
        self.model = np.zeros(len(self.window), dtype=np.uint8)
        view = self.memory.view.array(self.window.start, len(self.window))
        view[:] = np.random.default_rng(self.seed).integers(0, 256, len(self.window), dtype=np.uint8)
        self.model[:] = view
        self.left = self.bursts
        self.busy: list[tuple[int, int, bool]] = []  # start, end, written
        self.address_writes: deque = deque()
        self.data_writes: deque = deque()
        self.open_writes: dict[int, deque] = {}
        self.open_reads: dict[int, deque] = {}
        self.address_read: tuple | None = None
        self.completed = 0
        self.reordered = 0
        self.read_order: list[int] = []

    @property
    def done(self) -> bool:
        return self.completed == self.bursts

    def _free(self, start: int, end: int, written: bool) -> bool:
        return all(end <= s or start >= e or not (written or w) for s, e, w in self.busy)

    def _new_burst(self) -> None:
        if self.left == 0 or len(self.busy) > 12:
            return
        beats = self.random.choice([1, 2, self.max_beats, self.random.randint(1, self.max_beats)])
        length = beats * self.beat
        start = self.random.randrange(len(self.window) // self.beat) * self.beat
        start = min(start, len(self.window) - length)
        if (self.window.start + start) // 4096 != (self.window.start + start + length - 1) // 4096:
            return
        written = self.random.random() < 0.5
        if not self._free(start, start + length, written):
            return
        identifier = self.random.randrange(1 << self.id_bits)
        if written:
            if len(self.address_writes) > 2:
                return
            data = self.random.randbytes(length)
            strobes = [self.random.choice([-1, -1, self.random.getrandbits(self.beat)]) for _ in range(beats)]
            burst = (start, beats, identifier, data, strobes)
            self.address_writes.append(burst)
            self.data_writes.append([burst, 0])
        else:
            if self.address_read is not None:
                return
            self.address_read = (start, beats, identifier, self.bursts - self.left)
        self.left -= 1
        self.busy.append((start, start + length, written))

    def drive(self) -> PortDriver:
        """Set the port's inputs for the next edge."""
        self._new_burst()
        port = self.memory.drive[self.port]
        wait = self.random.random
        if not port.awvalid and self.address_writes and wait() >= self.waits:
            start, beats, identifier, *_ = self.address_writes[0]
            port.awvalid, port.awaddr = 1, self.window.start + start
            port.awlen, port.awid = beats - 1, identifier
        if not port.wvalid and self.data_writes and wait() >= self.waits:
            (_, beats, _, data, strobes), index = self.data_writes[0]
            port.wvalid, port.wlast = 1, int(index == beats - 1)
            port.wdata = int.from_bytes(data[index * self.beat : (index + 1) * self.beat], "little")
            port.wstrb = strobes[index]
        if not port.arvalid and self.address_read is not None and wait() >= self.waits:
            start, beats, identifier, _ = self.address_read
            port.arvalid, port.araddr = 1, self.window.start + start
            port.arlen, port.arid = beats - 1, identifier
        port.rready, port.bready = int(wait() >= self.waits), int(wait() >= self.waits)
        return port

    def sampled(self, seen: PortAnswer) -> None:
        """Take the port's state after an edge, and its state before."""
        port = self.memory.drive[self.port]
        if port.awvalid and seen.awready:
            burst = self.address_writes.popleft()
            self.open_writes.setdefault(burst[2], deque()).append(burst)
            port.awvalid = 0
        if port.wvalid and seen.wready:
            entry = self.data_writes[0]
            entry[1] += 1
            if port.wlast:
                self.data_writes.popleft()
            port.wvalid = 0
        if port.arvalid and seen.arready:
            assert self.address_read is not None
            start, beats, identifier, number = self.address_read
            self.open_reads.setdefault(identifier, deque()).append([start, beats, 0, number])
            self.address_read = None
            port.arvalid = 0
        if seen.rvalid and port.rready:
            self._data(seen)
        if seen.bvalid and port.bready:
            self._response(seen)

    def _data(self, seen: PortAnswer) -> None:
        burst = self.open_reads[seen.rid][0]
        start, beats, index, number = burst
        at = start + index * self.beat
        expected = int.from_bytes(self.model[at : at + self.beat].tobytes(), "little")
        assert seen.rdata == expected, f"read at {at:#x}: {seen.rdata:#x}, not {expected:#x}"
        burst[2] += 1
        assert seen.rlast == (burst[2] == beats)
        if burst[2] == beats:
            self.open_reads[seen.rid].popleft()
            self.busy.remove((start, start + beats * self.beat, False))
            self.reordered += bool(self.read_order and number < max(self.read_order))
            self.read_order.append(number)
            self.completed += 1

    def _response(self, seen: PortAnswer) -> None:
        start, beats, _, data, strobes = self.open_writes[seen.bid].popleft()
        for index in range(beats):
            for lane in range(self.beat):
                if strobes[index] >> lane & 1:
                    self.model[start + index * self.beat + lane] = data[index * self.beat + lane]
        self.busy.remove((start, start + beats * self.beat, True))
        self.completed += 1


def run_managers(memory: NativeMemory, managers: list[RandomManager], *, limit: int = 200_000) -> None:
    """Run managers to their end."""
    while not all(manager.done for manager in managers):
        for manager in managers:
            manager.drive()
        seen = list(memory.answer)
        memory.cycle()
        for manager in managers:
            manager.sampled(seen[manager.port])
        assert memory.edge < limit, [m.completed for m in managers]
