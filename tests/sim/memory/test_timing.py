"""Identities between the models' parameters and the edges at which things happen."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from hw.board.memory_timing import DdrTiming, HbmTiming, HostTiming
from sim.memory.config import FastTiming
from tests.support.memory.master import bare_hbm, config, read_all, write_all
from tests.support.memory.native import NativeMemory

ROW = 1 << 14  # the next row of the same bank, with the default map
CHANNEL = 1 << 24


def first_latency(memory: NativeMemory, address: int, *, port: int = 0) -> int:
    asked, got = read_all(memory, [address], port=port)
    return got[0] - asked[0]


def gap(edges: list[int], skip: int = 0) -> float:
    """Mean edges from beat to beat, without the first ones."""
    return (edges[-1] - edges[skip]) / (len(edges) - 1 - skip)


class TestIdleLatency:
    @pytest.mark.parametrize(
        "change",
        [
            {},
            {"cas_latency_ck": 20, "request_axi_cycles": 9},
            {"rcd_read_ck": 22, "rp_ck": 18, "response_axi_cycles": 31},
        ],
    )
    @pytest.mark.parametrize("switch", [0, 7])
    def test_page_states(self, change, switch):
        timing = bare_hbm(switch_axi_cycles=switch, **change)
        hit = timing.request_axi_cycles + timing.response_axi_cycles + switch
        hit += (timing.cas_latency_ck + timing.data_ck) // 2
        closed, miss = hit + timing.rcd_read_ck // 2, hit + (timing.rcd_read_ck + timing.rp_ck) // 2
        with NativeMemory(config=config(timing)) as memory:
            measured = [first_latency(memory, address) for address in (0, 64, ROW, ROW + 64, 0)]
        assert measured == [closed, hit, miss, hit, miss]

    def test_published_latency_is_the_default(self):
        with NativeMemory(config=config(bare_hbm(switch_axi_cycles=0))) as memory:
            assert [first_latency(memory, address) for address in (0, 64, ROW)] == [55, 48, 62]

    def test_distance(self):
        timing = bare_hbm()
        with NativeMemory(config=config(timing)) as memory:
            for channel in range(32):
                first_latency(memory, channel * CHANNEL)
                hops = channel // 4
                extra = timing.lateral_axi_cycles[hops] + (timing.stack_axi_cycles if channel >= 16 else 0)
                assert first_latency(memory, channel * CHANNEL + 64) == 55 + extra

    @pytest.mark.parametrize("mhz", [100, 250, 300, 333, 449, 600])
    def test_kernel_clock_crosses_by_time(self, mhz):
        """Latency in ns is the native one, up to a period of each clock."""
        with NativeMemory(config=config(bare_hbm(), mhz=mhz)) as memory:
            first_latency(memory, 0)
            spread = []
            for _ in range(40):
                spread.append(first_latency(memory, 64) * 1e3 / mhz)
                memory.cycle()
        native = 55 / 0.45
        assert min(spread) >= native - 1e3 / 450 - 1e-6
        assert max(spread) <= native + 1e3 / 450 + 1e3 / mhz

    def test_fabric_adds_its_time(self):
        slow = replace(bare_hbm(), fabric_request_ns=40.0, fabric_response_ns=60.0)
        with NativeMemory(config=config(slow)) as memory:
            first_latency(memory, 0)
            assert first_latency(memory, 64) == 55 + 45

    def test_write_response_does_not_wait_for_the_dram(self):
        timing = bare_hbm(switch_axi_cycles=0)
        with NativeMemory(config=config(timing)) as memory:
            last, answered = write_all(memory, [0])
        assert answered[0] - last[0] == timing.request_axi_cycles + timing.write_response_axi_cycles

    def test_ddr(self):
        with NativeMemory(config=config(DdrTiming(), channels=1, mhz=300), data_bits=512) as memory:
            assert [first_latency(memory, address) for address in (0, 128)] == [26, 22]


class TestCommandBounds:
    """Steady-state rates that one parameter decides."""

    def measure(self, timing: HbmTiming, addresses: list[int]) -> float:
        with NativeMemory(config=config(timing)) as memory:
            _, got = read_all(memory, addresses)
        return 2 * gap(got, skip=len(got) // 4)  # AXI cycles to command cycles

    @pytest.mark.parametrize("short", [2, 6])
    def test_ccd_short(self, short):
        timing = bare_hbm(ccd_short_ck=short, ccd_long_ck=2 * short)
        assert self.measure(timing, [32 * i for i in range(400)]) == pytest.approx(short, rel=0.03)

    @pytest.mark.parametrize("long", [4, 10])
    def test_ccd_long(self, long):
        same_group = [64 * (i % 32) for i in range(400)]
        assert self.measure(bare_hbm(ccd_long_ck=long), same_group) == pytest.approx(long, rel=0.03)

    @pytest.mark.parametrize("cycle", [45, 90])
    def test_row_cycle(self, cycle):
        """One bank, a new row each time."""
        timing = bare_hbm(rc_ck=cycle, ras_ck=cycle - 14)
        assert self.measure(timing, [ROW * i for i in range(120)]) == pytest.approx(cycle, rel=0.03)

    def test_four_activate_window(self):
        """All banks in turn, a new row each time."""
        order = [(b & 1) << 5 | (b >> 1 & 1) << 13 | (b >> 2) << 11 for b in range(16)]
        addresses = [ROW * (i // 16) + order[i % 16] for i in range(480)]
        assert self.measure(bare_hbm(faw_ck=80), addresses) == pytest.approx(80 / 4, rel=0.03)
        assert self.measure(bare_hbm(faw_ck=4, rrd_short_ck=12, rrd_long_ck=12), addresses) == pytest.approx(
            12, rel=0.03
        )

    def test_window_hides_row_misses(self):
        """Two rows of one bank in alternation: a window of one serves them in order, a larger one by row."""
        addresses = [ROW * (i % 2) + 64 * (i // 2 % 32) for i in range(256)]
        in_order = self.measure(bare_hbm(window_granules=1), addresses)
        reordered = self.measure(bare_hbm(window_granules=32), addresses)
        assert in_order > 30
        assert reordered < in_order / 5

    def test_turnaround(self):
        """Reads and writes together lose the data bus at every change of direction."""
        busy = {}
        for gap_ck in (2, 40):
            timing = bare_hbm(read_to_write_gap_ck=gap_ck, direction_granules=16, write_high_granules=16)
            with NativeMemory(config=config(timing, ports=2, port_channels=(0, 0))) as memory:
                for edge in range(3000):
                    for port, drive in enumerate(memory.drive):
                        drive.arvalid, drive.araddr, drive.arlen = int(port == 0), 512 * (edge % 64), 15
                        drive.awvalid, drive.awaddr, drive.awlen = int(port == 1), CHANNEL // 2, 15
                        drive.wvalid = int(port == 1)
                    memory.cycle()
                channel = memory.view.counters()["channels"][0]
            assert channel["turnarounds"] > 20
            busy[gap_ck] = channel["busy_axi_cycles"]
        assert busy[40] < busy[2] * 0.8


class TestRefresh:
    def test_interval_and_length(self):
        timing = bare_hbm(refresh_interval_ck=3510, refresh_ck=234)
        with NativeMemory(config=config(timing)) as memory:
            _, got = read_all(memory, [32 * i for i in range(12_000)])
            counted = memory.view.counters()["channels"]
        expected = memory.edge * 2 / 3510
        assert all(abs(channel["refreshes"] - expected) <= 1.5 for channel in counted[:1])
        pauses = [(b - a, b) for a, b in itertools.pairwise(got) if b - a > 60]
        assert len(pauses) == counted[0]["refreshes"]
        for length, _ in pauses:  # closing the rows, the refresh, opening one
            assert 234 // 2 <= length <= (234 + 31 + 14 + 14) // 2 + 4
        starts = [at for _, at in pauses]
        assert all(abs(b - a - 3510 // 2) <= 20 for a, b in itertools.pairwise(starts))

    def test_idle_channels_refresh_too(self):
        with NativeMemory(config=config(bare_hbm(refresh_interval_ck=3510))) as memory:
            first_latency(memory, 0)
            memory._library.loom_idle(memory._handle, 10_000)
            memory.edge += 10_000
            assert first_latency(memory, 64) >= 62  # its row was closed
            assert memory.view.counters()["channels"][0]["refreshes"] == pytest.approx(20_100 / 3510, abs=1)


class TestSwitch:
    def pair(self, ids) -> int:
        addresses = [(i % 2) * CHANNEL for i in range(40)]
        with NativeMemory(config=config(bare_hbm())) as memory:
            asked, got = read_all(memory, addresses, ids=ids)
        return got[-1] - asked[0]

    def test_same_identifier_to_another_channel_waits(self):
        """Each access takes the whole latency with one identifier, and hides in the others with two."""
        one, two = self.pair((0,)), self.pair((0, 1))
        assert one >= 38 * 55
        assert two < one / 8

    def test_same_channel_does_not_wait(self):
        with NativeMemory(config=config(bare_hbm())) as memory:
            _, got = read_all(memory, [32 * i for i in range(40)])
        assert got[-1] - got[0] < 60

    @pytest.mark.parametrize("links", [1, 2])
    def test_lateral_links_limit_reads(self, links):
        """Four ports read from the next mini-switch: a beat a cycle and link."""
        timing = bare_hbm(lateral_links=links)
        edges = 1500
        with NativeMemory(config=config(timing, ports=4)) as memory:
            for edge in range(edges):
                for port, drive in enumerate(memory.drive):
                    drive.arvalid, drive.araddr, drive.arlen = 1, (4 + port) * CHANNEL + 512 * (edge % 64), 15
                memory.cycle()
            beats = sum(port["read_beats"] for port in memory.view.counters()["ports"])
        assert beats == pytest.approx(links * edges, rel=0.12)
        assert beats <= links * edges

    @pytest.mark.parametrize("dead", [0, 1, 4])
    def test_lateral_dead_cycle_on_a_change_of_write_master(self, dead):
        """Ports 0 and 1 share a link; their bursts alternate on it."""
        timing = bare_hbm(lateral_dead_axi_cycles=dead)
        beats = 4
        edges = 2000
        with NativeMemory(config=config(timing, ports=2)) as memory:
            sent = [0, 0]
            for _ in range(edges):
                for port, drive in enumerate(memory.drive):
                    drive.awvalid, drive.awaddr, drive.awlen = 1, (4 + port) * CHANNEL, beats - 1
                    drive.wvalid, drive.wlast = 1, int(sent[port] % beats == beats - 1)
                seen = list(memory.answer)
                memory.cycle()
                for port in range(2):
                    sent[port] += seen[port].wready
            counted = sum(channel["write_bytes"] // 32 for channel in memory.view.counters()["channels"])
        assert counted == pytest.approx(edges * beats / (beats + dead), rel=0.06)

    @pytest.mark.parametrize("kind", ["read", "write"])
    def test_a_lateral_link_is_shared_fairly(self, kind):
        """Ports 0 and 1 share a link, and so do 2 and 3: all get the same."""
        with NativeMemory(config=config(bare_hbm(), ports=4)) as memory:
            sent = [0] * 4
            for edge in range(2500):
                for port, drive in enumerate(memory.drive):
                    address = (4 + port) * CHANNEL + 512 * (edge % 64)
                    drive.arvalid, drive.araddr, drive.arlen = int(kind == "read"), address, 15
                    drive.awvalid, drive.awaddr, drive.awlen = int(kind == "write"), address, 15
                    drive.wvalid, drive.wlast = int(kind == "write"), int(sent[port] % 16 == 15)
                seen = list(memory.answer)
                memory.cycle()
                for port in range(4):
                    sent[port] += seen[port].wready
            beats = [port[f"{kind}_beats"] for port in memory.view.counters()["ports"]]
        assert max(beats) - min(beats) <= 64

    def test_card_cap(self):
        timing = bare_hbm(card_bytes_per_second=20e9)
        with NativeMemory(config=config(timing, ports=4)) as memory:
            for edge in range(4000):
                for port, drive in enumerate(memory.drive):
                    drive.arvalid, drive.araddr, drive.arlen = 1, port * CHANNEL + 512 * (edge % 256), 15
                memory.cycle()
            bytes_read = sum(channel["read_bytes"] for channel in memory.view.counters()["channels"])
        assert bytes_read / (4000 / 0.45) == pytest.approx(20.0, rel=0.08)


class TestPipes:
    @pytest.mark.parametrize(
        ("latency", "rate", "mhz"),
        [(100.0, 14.4e9, 300), (40.0, 4e9, 450), (500.0, 64e9, 250)],
    )
    def test_fast_read(self, latency, rate, mhz):
        """First beat after the latency, the k-th not before k beats' time later, all on the next edge."""
        timing = FastTiming(latency_ns=latency, bytes_per_second=rate)
        with NativeMemory(config=config(timing, mhz=mhz)) as memory:
            asked, got = read_all(memory, [0, 512], beats=16)
        period = 1e3 / mhz
        for index, edge in enumerate(got):
            earliest = asked[0] + (latency + 32 / rate * 1e9 * index) / period
            assert edge == max(math.ceil(earliest - 1e-6), got[index - 1] + 1 if index else 0)

    def test_fast_write(self):
        timing = FastTiming(latency_ns=80.0, bytes_per_second=9.6e9)
        with NativeMemory(config=config(timing, mhz=300)) as memory:
            last, answered = write_all(memory, [512 * i for i in range(20)], beats=16)
        assert answered[0] - last[0] == 25  # 80 ns, and a beat's time at that rate
        assert gap(answered) == pytest.approx(16, rel=0.02)

    def test_host_reads_are_limited_by_bytes_in_flight(self):
        timing = HostTiming(read_in_flight_bytes=8192, first_data_ns=1000.0)
        host = config(timing, channels=1, mhz=300, max_burst_beats=64)
        with NativeMemory(config=host, data_bits=512) as memory:
            _, got = read_all(memory, [4096 * i for i in range(20)], beats=64)
        burst_ns = (got[-1] - got[0]) / 0.3 / 19.5
        # Two bursts are under way: each takes its latency and its data, while the other's data go by.
        assert burst_ns == pytest.approx((1000 + 4096 / 12.77) / 2, rel=0.05)

    def test_host_serial_read(self):
        host = config(HostTiming(), channels=1, mhz=300, max_burst_beats=64)
        with NativeMemory(config=host, data_bits=512) as memory:
            asked, got = read_all(memory, [0], beats=64)
        assert (got[0] - asked[0]) / 0.3 == pytest.approx(450, abs=4)
        assert (got[-1] - asked[0]) / 0.3 == pytest.approx(450 + 4032 / 12.77, abs=4)

    @pytest.mark.parametrize(("used", "rate"), [(0, 12.77), (2**33, 11.4)])
    def test_large_buffers_are_slower(self, used, rate):
        host = config(HostTiming(), channels=1, mhz=300, max_burst_beats=64, working_set_bytes=used)
        with NativeMemory(config=host, data_bits=512) as memory:
            _, got = read_all(memory, [4096 * i for i in range(60)], beats=64)
        assert 64 / gap(got) * 0.3 == pytest.approx(rate, rel=0.01)
