# amaranth: UnusedElaboratable=no
"""The traffic generators: the addresses they issue, the limits they keep, and what they measure."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from hw.errors import InputError
from hw.lib.traffic import MAX_OUTSTANDING, TrafficGenerator
from sim.calibration.program import RESULT_WORDS as WORDS
from sim.calibration.program import TrafficProgram, result_of
from tests.support.gateware import waves

BEAT = 32
IDLE = TrafficProgram(stride_bytes=BEAT, beats=1, count=0)


class NaiveMemory:
    """Answers in order after a latency; keeps what it saw."""

    def __init__(self, *, latency: int, ready: float, seed: int = 1) -> None:
        self.latency, self.ready = latency, ready
        self.random = random.Random(seed)
        self.reads: list[tuple[int, int, int]] = []  # cycle, address, beats
        self.writes: list[tuple[int, int, int]] = []
        self.ids: list[int] = []
        self.data: list[int] = []
        self.open_reads = self.open_writes = self.most_reads = self.most_writes = 0

    @staticmethod
    def sample(ctx, port, names: str) -> list[int]:
        return [ctx.get(getattr(port, name)) for name in names.split()]

    async def run(self, ctx, port, cycles: int) -> None:
        queue: list[list[int]] = []  # due, beats left, id
        responses: list[tuple[int, int]] = []
        beat = 0
        for cycle in range(cycles):
            for name in ("arready", "awready", "wready"):
                ctx.set(getattr(port, name), int(self.random.random() < self.ready))
            ctx.set(port.rvalid, int(bool(queue) and queue[0][0] <= cycle))
            if queue:
                ctx.set(port.rlast, int(queue[0][1] == 1))
                ctx.set(port.rid, queue[0][2])
            ctx.set(port.bvalid, int(bool(responses) and responses[0][0] <= cycle))
            (ar, ar_ready, araddr, arlen, arid) = self.sample(ctx, port, "arvalid arready araddr arlen arid")
            (aw, aw_ready, awaddr, awlen) = self.sample(ctx, port, "awvalid awready awaddr awlen")
            (w, w_ready, wlast, wdata) = self.sample(ctx, port, "wvalid wready wlast wdata")
            (r, r_ready, b, b_ready) = self.sample(ctx, port, "rvalid rready bvalid bready")
            await ctx.tick()
            if r and r_ready:
                queue[0][1] -= 1
                queue[0][0] = cycle + 1
                if queue[0][1] == 0:
                    queue.pop(0)
                    self.open_reads -= 1
            if b and b_ready:
                responses.pop(0)
                self.open_writes -= 1
            if ar and ar_ready:
                self.reads.append((cycle, araddr, arlen + 1))
                self.ids.append(arid)
                queue.append([cycle + self.latency, arlen + 1, arid])
                self.open_reads += 1
            if aw and aw_ready:
                self.writes.append((cycle, awaddr, awlen + 1))
                self.open_writes += 1
            if w and w_ready:
                self.data.append(wdata)
                beat += 1
                assert wlast == (beat == self.expected_beats)
                if wlast:
                    beat = 0
                    responses.append((cycle + self.latency, 0))
            self.most_reads = max(self.most_reads, self.open_reads)
            self.most_writes = max(self.most_writes, self.open_writes)

    expected_beats = 1


def run(
    *,
    read: TrafficProgram = IDLE,
    write: TrafficProgram = IDLE,
    latency: int = 20,
    ready: float = 1.0,
    cycles: int = 600,
) -> tuple[NaiveMemory, Any, Any]:
    dut = TrafficGenerator(data_width=8 * BEAT, addr_width=40, id_width=2)
    memory = NaiveMemory(latency=latency, ready=ready)
    memory.expected_beats = write.beats
    results: list[Any] = []

    def bits(program: TrafficProgram) -> int:
        return sum(word << 64 * index for index, word in enumerate(program.words()))

    async def bench(ctx):
        for view, program in ((dut.read_program, read), (dut.write_program, write)):
            ctx.set(view.as_value(), bits(program))
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        await memory.run(ctx, dut.axi, cycles)
        assert not ctx.get(dut.busy), "the program did not end"
        for view in (dut.read_result, dut.write_result):
            value = ctx.get(view.as_value())
            results.append(result_of([value >> 64 * word & (1 << 64) - 1 for word in range(WORDS)]))

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    waves.run(simulator)
    return memory, results[0], results[1]


def test_linear_reads_wrap_in_their_window():
    program = TrafficProgram(base=0x10000, window_bytes=4096, stride_bytes=1024, beats=4, count=6)
    memory, result, idle = run(read=program)
    assert [address for _, address, _ in memory.reads] == [0x10000 + 1024 * (i % 4) for i in range(6)]
    assert {beats for *_, beats in memory.reads} == {4}
    assert result.beats == 24
    assert idle.beats == idle.cycles == 0


def test_random_addresses_are_aligned_spread_and_repeatable():
    program = TrafficProgram(
        base=1 << 30, window_bytes=1 << 20, stride_bytes=256, random=True, beats=1, count=200
    )
    first, *_ = run(read=program, cycles=1500)
    second, *_ = run(read=program, cycles=1500, ready=0.5)
    addresses = [address for _, address, _ in first.reads]
    assert addresses == [address for _, address, _ in second.reads]
    assert all(address % 256 == 0 and 0 <= address - (1 << 30) < 1 << 20 for address in addresses)
    assert len(set(addresses)) > 190
    for bit in range(8, 20):  # each address bit takes both values about equally often
        assert 60 < sum(address >> bit & 1 for address in addresses) < 140


@pytest.mark.parametrize("outstanding", [1, MAX_OUTSTANDING])
@pytest.mark.parametrize("kind", ["read", "write"])
def test_outstanding_limit_is_kept_and_used(outstanding, kind):
    program = TrafficProgram(stride_bytes=64, beats=2, count=80, outstanding=outstanding)
    latency = 20 if outstanding == 1 else 150
    memory, read, write = run(**{kind: program}, latency=latency, cycles=2400)
    most = memory.most_reads if kind == "read" else memory.most_writes
    assert most == min(outstanding, MAX_OUTSTANDING)
    assert (read if kind == "read" else write).beats == 160


@pytest.mark.parametrize("interval", [2, 7, 50])
def test_interval_between_addresses(interval):
    memory, *_ = run(read=TrafficProgram(stride_bytes=64, beats=1, count=10, interval_cycles=interval))
    cycles = [cycle for cycle, *_ in memory.reads]
    assert [b - a for a, b in itertools.pairwise(cycles)] == [interval] * 9


def test_addresses_every_cycle_without_an_interval():
    memory, result, _ = run(read=TrafficProgram(stride_bytes=32, beats=1, count=50))
    cycles = [cycle for cycle, *_ in memory.reads]
    assert cycles[-1] - cycles[0] == 49
    assert result.latency_min == result.latency_max == result.latency_last == 20
    assert result.latency_sum == 50 * 20


def test_identifiers_rotate():
    memory, *_ = run(read=TrafficProgram(stride_bytes=32, beats=1, count=9, ids=4))
    assert memory.ids == [0, 1, 2, 3, 0, 1, 2, 3, 0]


def test_serial_read_times():
    _, result, _ = run(read=TrafficProgram(stride_bytes=64, beats=2, count=3, outstanding=1), latency=30)
    assert (result.latency_min, result.latency_max) == (30, 30)
    assert result.first == 31
    assert result.cycles == 31 + 2 + 2 * (30 + 1 + 2)  # the last beat, and two more bursts


def test_writes_count_their_beats():
    program = TrafficProgram(base=4096, stride_bytes=128, beats=4, count=20)
    memory, _, result = run(write=program, ready=0.6)
    assert [value & 0xFFFFFFFF for value in memory.data] == list(range(80))
    assert memory.data[5] == int.from_bytes((5).to_bytes(4, "little") * 8, "little")
    assert [address for _, address, _ in memory.writes] == [4096 + 128 * i for i in range(20)]
    assert result.beats == 80
    assert result.latency_min == result.latency_max == 20


@pytest.mark.parametrize("pace", [2, 5])
def test_paced_writes(pace):
    _, _, result = run(write=TrafficProgram(stride_bytes=128, beats=4, count=10, pace_cycles=pace))
    assert result.cycles == 39 * pace + 20 + 2  # first address to first data, last data to response


def test_writes_go_without_bubbles():
    memory, _, result = run(write=TrafficProgram(stride_bytes=128, beats=4, count=30))
    assert result.cycles <= 30 * 4 + 20 + 4
    assert memory.most_writes > 1


def test_following_writes_do_not_overtake_reads():
    read = TrafficProgram(stride_bytes=128, beats=4, count=10)
    write = TrafficProgram(stride_bytes=128, beats=4, count=10, follow=True)
    _, reads, writes = run(read=read, write=write, latency=100)
    assert writes.first > reads.first + 100
    assert writes.cycles > reads.cycles


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("window_bytes", 3000),
        ("ids", 3),
        ("beats", 0),
        ("beats", 257),
        ("outstanding", 65),
        ("outstanding", 0),
    ],
)
def test_programs_are_checked(field, value):
    with pytest.raises(InputError, match=field):
        TrafficProgram(**({"stride_bytes": 64, "beats": 1, "count": 1} | {field: value}))


def test_random_stride_must_be_a_power_of_two():
    with pytest.raises(InputError, match="stride_bytes must be a power of two when addresses are random"):
        TrafficProgram(stride_bytes=96, random=True, beats=1, count=1)


def test_identifier_width_is_limited():
    with pytest.raises(InputError, match="id_width must be at most 8, not 9"):
        TrafficGenerator(id_width=9)
