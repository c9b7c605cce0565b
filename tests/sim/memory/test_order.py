"""Bytes, order and liveness of the memory models under random legal traffic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hw.board.memory_timing import DdrTiming, HbmTiming, HostTiming
from sim.memory.config import FastTiming, MemoryConfig
from tests.support.memory.master import RandomManager, bare_hbm, config, read_all, run_managers, write_all
from tests.support.memory.native import NativeMemory

CHANNEL = 1 << 24
REFRESHED = HbmTiming(refresh_interval_ck=900)
MEMORIES = {
    "hbm": (config(REFRESHED, ports=2, mhz=300), 256),
    "hbm512": (config(REFRESHED, ports=2, mhz=300), 512),
    "hbm128": (config(REFRESHED, ports=2, mhz=700), 128),
    "hbm32": (config(REFRESHED, ports=2, mhz=300), 32),
    "ddr": (config(DdrTiming(refresh_interval_ck=1000), ports=2, channels=2, mhz=300), 512),
    "zynq": (config(DdrTiming(port_beat_bytes=16), ports=2, channels=1, mhz=300), 128),
    "host": (
        config(HostTiming(first_data_ns=100.0, write_response_ns=60.0), ports=2, channels=1, mhz=300),
        512,
    ),
    "fast": (config(FastTiming(), ports=2, channels=2, mhz=300), 256),
}


def run(
    memory: MemoryConfig, data_bits: int, *, seed: int, waits: float, bursts: int = 120
) -> list[RandomManager]:
    """Two managers in neighbouring windows; port 1's window spans two channels where there are two."""
    with NativeMemory(config=memory, data_bits=data_bits) as native:
        middle = CHANNEL - 8192 if memory.channels > 1 else 8192
        windows = [range(4096, 4096 + 8192), range(middle + 8192 - 4096, middle + 16384)]
        managers = [
            RandomManager(native, port, windows[port], seed * 2 + port, bursts, waits=waits)
            for port in range(2)
        ]
        run_managers(native, managers)
        assert native.view.errors(at_end=True) == []
        for manager in managers:
            stored = native.view.array(manager.window.start, len(manager.window))
            assert np.array_equal(stored, manager.model)
        counted = native.view.counters()
        for port, manager in zip(counted["ports"], managers, strict=True):
            assert port["read_bursts"] + port["write_bursts"] == manager.bursts
            assert port["read_bytes"] == port["read_beats"] * manager.beat
    return managers


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("waits", [0.0, 0.5])
def test_bytes(name, waits):
    memory, data_bits = MEMORIES[name]
    run(memory, data_bits, seed=1, waits=waits)


@pytest.mark.parametrize("name", ["hbm", "fast", "host", "zynq"])
@pytest.mark.parametrize(("percent", "latency"), [(0, 60), (30, 0), (70, 48), (95, 5)])
def test_bytes_under_jitter(name, percent, latency):
    memory, data_bits = MEMORIES[name]
    jittered = replace(memory, jitter_percent=percent, jitter_latency_cycles=latency, seed=percent)
    run(jittered, data_bits, seed=2, waits=0.3, bursts=50)


@pytest.mark.parametrize("jitter", [0, 40])
@pytest.mark.parametrize("room", [512, 4096])
def test_bytes_through_the_whole_switch(room, jitter):
    """Eight ports, each with a window over two far channels, some in two mini-switches or stacks."""
    memory = config(
        HbmTiming(refresh_interval_ck=700, fabric_read_bytes=room, fabric_write_bytes=room, queue_bursts=2),
        ports=8,
        mhz=450,
        jitter_percent=jitter,
    )
    boundaries = [CHANNEL * channel for channel in (28, 24, 20, 16, 12, 8, 4, 1)]
    with NativeMemory(config=memory) as native:
        managers = [
            RandomManager(native, port, range(boundary - 4096, boundary + 4096), port, 60, waits=0.1)
            for port, boundary in enumerate(boundaries)
        ]
        run_managers(native, managers)
        assert native.view.errors(at_end=True) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("seed", range(8))
def test_bytes_many_seeds(name, seed):
    memory, data_bits = MEMORIES[name]
    run(
        replace(memory, jitter_percent=(0, 30, 70, 95)[seed % 4], seed=seed),
        data_bits,
        seed=seed,
        waits=seed % 3 * 0.4,
    )


def test_jitter_reorders_identifiers_and_only_them():
    memory, data_bits = MEMORIES["fast"]
    jittered = replace(memory, jitter_percent=30, jitter_latency_cycles=80)
    managers = run(jittered, data_bits, seed=5, waits=0.0, bursts=200)
    assert (
        sum(manager.reordered for manager in managers) > 10
    )  # the managers check each identifier's own order
    with NativeMemory(config=replace(jittered, port_channels=(0,))) as native:
        _, got = read_all(native, [32 * i for i in range(100)])
        assert len(got) == 100


def test_jitter_depends_on_the_seed_alone():
    def edges(seed: int) -> list[int]:
        with NativeMemory(
            config=config(FastTiming(), jitter_percent=50, jitter_latency_cycles=9, seed=seed)
        ) as memory:
            return read_all(memory, [512 * i for i in range(20)], beats=16)[1]

    assert edges(1) == edges(1)
    assert edges(1) != edges(2)


def test_jitter_holds_every_channel():
    with NativeMemory(config=config(FastTiming(), jitter_percent=50)) as memory:
        write_all(memory, [512 * i for i in range(40)], beats=16)
        read_all(memory, [512 * i for i in range(40)], beats=16)
        port = memory.view.counters()["ports"][0]
    assert port["write_address_stall_cycles"] > 10
    assert port["read_address_stall_cycles"] > 10
    assert port["write_data_stall_cycles"] > 200
    assert port["read_wait_cycles"] > 200
    assert port["write_latency_cycles_max"] > port["write_latency_cycles_min"] + 3


def test_a_write_takes_effect_by_its_response():
    """A read that does not wait for the response may see the old bytes; one that does sees the new ones."""
    with NativeMemory(config=config(FastTiming(latency_ns=400.0))) as memory:
        drive = memory.drive[0]
        drive.awvalid = drive.wvalid = drive.wlast = 1
        drive.wdata = 0x55
        seen_early = None
        while not memory.answer[0].bvalid:
            before = memory.answer[0]
            memory.cycle()
            if before.awready and drive.awvalid:
                drive.awvalid = 0
            if before.wready and drive.wvalid:
                drive.wvalid = 0
                seen_early = int(memory.view.array(0, 1)[0])
        assert seen_early == 0
        assert memory.view.array(0, 1)[0] == 0x55


def test_a_stalled_kernel_stalls_the_memory_and_loses_nothing():
    with NativeMemory(config=config(bare_hbm())) as memory:
        memory.view.array(0, 8192)[:] = np.arange(8192, dtype=np.uint8)
        drive = memory.drive[0]
        drive.rready = 0
        asked = 0
        for _ in range(3000):
            drive.arvalid, drive.araddr, drive.arlen = int(asked < 80), 512 * (asked % 16), 15
            seen = memory.answer[0]
            memory.cycle()
            asked += drive.arvalid and seen.arready
        counted = memory.view.counters()
        held = counted["channels"][0]["read_bytes"]
        # What fills up: the return buffer and the channel's own; the rest waits as addresses.
        assert held <= bare_hbm().fabric_read_bytes + 128 * 32 + 512
        assert asked == bare_hbm().port_read_bursts
        drive.rready = 1
        got = []
        while len(got) < asked * 16:
            drive.arvalid = 0
            seen = memory.answer[0]
            memory.cycle()
            if seen.rvalid:
                got.append(seen.rdata & 0xFF)
        assert got == [32 * (i % 256) % 256 for i in range(asked * 16)]


def test_reset_forgets_what_is_under_way():
    with NativeMemory(config=config(bare_hbm(), ports=2)) as memory:
        for drive in memory.drive:
            drive.arvalid, drive.arlen = 1, 15
            drive.awvalid = drive.wvalid = drive.wlast = 1
        for _ in memory.cycles(60):
            pass
        for drive in memory.drive:
            drive.arvalid = drive.awvalid = drive.wvalid = 0
        for _ in range(3):
            memory.cycle(reset=True)
            assert not any(answer.rvalid or answer.bvalid or answer.arready for answer in memory.answer)
        for _ in memory.cycles(300):
            assert not any(answer.rvalid or answer.bvalid for answer in memory.answer)
        assert memory.view.errors(at_end=True) == []
        assert len(read_all(memory, [0, 64])[1]) == 2


def test_views_share_the_store():
    base = 1 << 40
    with NativeMemory(config=config(bare_hbm(), base_address=base)) as memory:
        view = memory.view.array(base + 100, 64)
        view[:] = 7
        assert memory.view.array(base + 132, 1)[0] == 7
        assert memory.view.size_bytes == 32 * CHANNEL
        _, got = read_all(memory, [base + 96])
        assert len(got) == 1
        for address, nbytes in ((base - 1, 1), (base + 32 * CHANNEL, 1), (base, -1)):
            with pytest.raises(ValueError, match="address, nbytes must be within 0x10000000000"):
                memory.view.array(address, nbytes)


@pytest.mark.parametrize("seed", range(8))
def test_writes_of_one_identifier_take_effect_in_order(seed):
    """As AXI has it: what is written last to an address stays, though many such writes are under way."""
    jittery = replace(MEMORIES["fast"][0], jitter_percent=50, jitter_latency_cycles=48, seed=seed)
    with NativeMemory(config=jittery, data_bits=256) as memory:
        write_all(memory, [4096] * 12)
        assert memory.view.array(4096, 32)[0] == 11
