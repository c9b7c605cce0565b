"""Every broken rule of AXI is reported; parameters that make no sense are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hw.board.dram_timing import map_fields
from hw.board.memory_timing import DdrTiming, HbmTiming, HostTiming
from hw.errors import InputError
from sim.memory.config import FastTiming, MemoryConfig, parameter_text
from sim.memory.view import MemoryView
from tests.support.memory.master import bare_hbm, config, read_all, write_all
from tests.support.memory.native import NativeMemory, PortDriver

SIZE = 32 << 24


def hold_off(memory: NativeMemory) -> PortDriver:
    """Fill the read addresses' room, so that the next one waits."""
    drive = memory.drive[0]
    drive.rready = 0
    while memory.edge < 3 or memory.answer[0].arready:
        drive.arvalid, drive.araddr, drive.arlen = 1, 0, 15
        memory.cycle()
    return drive


def read_valid_falls(memory: NativeMemory) -> None:
    drive = hold_off(memory)
    drive.arvalid = 1
    memory.cycle()
    drive.arvalid = 0
    memory.cycle()


def read_address_changes(memory: NativeMemory) -> None:
    drive = hold_off(memory)
    memory.cycle()
    drive.araddr += 64
    memory.cycle()


def read_length_changes(memory: NativeMemory) -> None:
    drive = hold_off(memory)
    memory.cycle()
    drive.arlen -= 1
    memory.cycle()


def write_valid_falls(memory: NativeMemory) -> None:
    drive = memory.drive[0]
    drive.awvalid = 1
    memory.cycle()  # nothing is ready at the first edge
    drive.awvalid = 0
    memory.cycle()


def write_identifier_changes(memory: NativeMemory) -> None:
    drive = memory.drive[0]
    drive.awvalid = 1
    memory.cycle()
    drive.awid = 1
    memory.cycle()


def data_valid_falls(memory: NativeMemory) -> None:
    drive = memory.drive[0]
    drive.wvalid = 1
    memory.cycle()
    drive.wvalid = 0
    memory.cycle()


def data_changes(memory: NativeMemory) -> None:
    drive = memory.drive[0]
    drive.wvalid, drive.wdata = 1, 5
    memory.cycle()
    drive.wdata = 6
    memory.cycle()


def strobe_changes(memory: NativeMemory) -> None:
    drive = memory.drive[0]
    drive.wvalid, drive.wstrb = 1, 3
    memory.cycle()
    drive.wstrb = 7
    memory.cycle()


def last_changes(memory: NativeMemory) -> None:
    drive = memory.drive[0]
    drive.wvalid = 1
    memory.cycle()
    drive.wlast = 1
    memory.cycle()


def burst(**fields: int) -> Callable[[NativeMemory], None]:
    def issue(memory: NativeMemory) -> None:
        memory.cycle()
        drive = memory.drive[0]
        for name, value in fields.items():
            setattr(drive, name, value)
        memory.cycle()
        drive.arvalid = drive.awvalid = 0

    return issue


def data(lasts: list[int]) -> Callable[[NativeMemory], None]:
    def send(memory: NativeMemory) -> None:
        drive = memory.drive[0]
        burst(awvalid=1, awlen=3)(memory)
        memory.cycle()
        for last in lasts:
            drive.wvalid, drive.wlast = 1, last
            memory.cycle()
        drive.wvalid = 0

    return send


def valid_in_reset(memory: NativeMemory) -> None:
    memory.cycle(reset=True)
    memory.drive[0].arvalid = 1
    memory.cycle(reset=True)


def ends_with_a_read(memory: NativeMemory) -> None:
    burst(arvalid=1)(memory)


def ends_with_a_write(memory: NativeMemory) -> None:
    burst(awvalid=1)(memory)


def ends_with_a_response(memory: NativeMemory) -> None:
    memory.drive[0].bready = 0
    data([0, 0, 0, 1])(memory)
    for _ in memory.cycles(100):
        pass
    assert memory.answer[0].bvalid


VIOLATIONS: list[tuple[Callable[[NativeMemory], None], str]] = [
    (read_valid_falls, "arvalid fell before arready"),
    (read_address_changes, "ar changed while it waited for arready"),
    (read_length_changes, "ar changed while it waited for arready"),
    (write_valid_falls, "awvalid fell before awready"),
    (write_identifier_changes, "aw changed while it waited for awready"),
    (data_valid_falls, "wvalid fell before wready"),
    (data_changes, "w changed while it waited for wready"),
    (strobe_changes, "w changed while it waited for wready"),
    (last_changes, "w changed while it waited for wready"),
    (burst(arvalid=1, arlen=16), "ar burst at 0x0 of 17 beats is longer than 16"),
    (burst(awvalid=1, awlen=255, awaddr=4096), "aw burst at 0x1000 of 256 beats is longer than 16"),
    (burst(arvalid=1, arlen=15, araddr=4096 - 32), "ar burst at 0xfe0 of 16 beats crosses a 4 KiB boundary"),
    (burst(awvalid=1, awlen=1, awaddr=8192 - 32), "aw burst at 0x1fe0 of 2 beats crosses a 4 KiB boundary"),
    (burst(arvalid=1, arsize=4), "has beats of 16 bytes on a port of 32"),
    (burst(awvalid=1, awsize=6), "has beats of 64 bytes on a port of 32"),
    (burst(arvalid=1, arburst=0), "is not incrementing"),
    (burst(awvalid=1, awburst=2), "is not incrementing"),
    (burst(arvalid=1, araddr=SIZE), "is outside the memory's 0x0 to 0x20000000"),
    (burst(awvalid=1, awaddr=SIZE - 32, awlen=1), "is outside the memory's 0x0 to 0x20000000"),
    (data([0, 1]), "wlast before the last beat of the burst"),
    (data([0, 0, 0, 0]), "the last beat of a burst without wlast"),
    (valid_in_reset, "a valid is high during reset"),
    (ends_with_a_read, "the run ended with 1 reads under way"),
    (ends_with_a_write, "the run ended with 1 writes short of data"),
    (ends_with_a_response, "the run ended with 1 writes whose response was not taken"),
]


@pytest.mark.parametrize(("breaks", "message"), VIOLATIONS)
def test_violation_is_reported(breaks, message):
    with NativeMemory(config=config(bare_hbm())) as memory:
        breaks(memory)
        errors = memory.view.errors(at_end=True)
    assert any(message in error for error in errors), errors
    assert all(error.startswith("port 0, edge ") for error in errors)


def test_many_violations_are_counted():
    with NativeMemory(config=config(FastTiming())) as memory:
        for _ in range(150):
            burst(arvalid=1, arburst=0)(memory)
        errors = memory.view.errors()
    assert len(errors) == 51
    assert errors[-1] == "and 100 more"


def test_legal_traffic_has_no_violation():
    with NativeMemory(config=config(bare_hbm())) as memory:
        write_all(memory, [4096 * i + 4096 - 512 for i in range(8)], beats=16)
        read_all(memory, [SIZE - 512], beats=16)
        assert memory.view.errors(at_end=True) == []


def change(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("model = hbm", "model = sram", "model must be hbm, ddr, host or fast, not sram"),
        ("rc_ck = 45", "", "rc_ck is missing"),
        ("rc_ck = 45", "rc_ck = 45\nrc_kc = 1", "unknown key rc_kc"),
        ("rc_ck = 45", "rc_ck = long", "rc_ck is not a number: long"),
        ("rc_ck = 45", "rc_ck = -1", "rc_ck is not a whole number: -1"),
        ("rc_ck = 45", "rc_ck", "no '=' in the line: rc_ck"),
        ("port_channels = 0", "port_channels = 32", "port_channels names a channel that is not there"),
        ("port_channels = 0", "port_channels = 0 1", "port_channels must name one channel a port"),
        ("channels = 32", "channels = 16", "size_bytes must be channels x channel_bytes"),
        ("jitter_percent = 0", "jitter_percent = 99", "jitter_percent must be at most 95"),
        ("[memory]", "[other]", "the memory parameters have no section [memory]"),
    ],
)
def test_models_refuse_parameters(old, new, message, capfd):
    with NativeMemory(config=config(HbmTiming())) as memory:
        text = change(parameter_text([memory.config]), old, new)
        with pytest.raises(InputError, match="accepted by the models"):
            memory.view.configure(text)
        # A refused configuration leaves the memory as it was.
        assert len(read_all(memory, [0])[1]) == 1
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HbmTiming(rc_ck=1.5), "rc_ck must be a whole number, not 1.5"),
        (
            lambda: HbmTiming(cas_latency_ck=-1),
            "cas_latency_ck must be a finite number of at least 0, not -1",
        ),
        (lambda: HbmTiming(fabric_request_ns=float("nan")), "fabric_request_ns must be a finite number"),
        (
            lambda: HbmTiming(axi_clock_mhz=400.0),
            r"command_clock_mhz must be a whole multiple of axi_clock_mhz \(400\)",
        ),
        (lambda: HbmTiming(axi_clock_mhz=0.0), "axi_clock_mhz, command_clock_mhz must be at least 1"),
        (lambda: HbmTiming(granule_bytes=48), "granule_bytes must be a power of two, not 48"),
        (lambda: HbmTiming(granule_bytes=256), "granule_bytes must be from 8 to 128, not 256"),
        (lambda: HbmTiming(window_granules=65), "window_granules must be from 1 to 64, not 65"),
        (lambda: HbmTiming(burst_granules=0), "burst_granules must be from 1 to 64, not 0"),
        (
            lambda: HbmTiming(read_buffer_granules=16),
            r"read_buffer_granules must be at least window_granules \(32\)",
        ),
        (
            lambda: HbmTiming(write_buffer_granules=16),
            "write_buffer_granules must be at least write_high_granules",
        ),
        (lambda: HbmTiming(banks_per_group=8), "address_map must be one with the bits of bank_groups"),
        (
            lambda: HbmTiming(bank_groups=32, banks_per_group=4),
            "bank_groups . banks_per_group must be at most 64",
        ),
        (
            lambda: HbmTiming(refresh_interval_ck=200),
            "refresh_interval_ck must be more than refresh_ck . rc_ck",
        ),
        (lambda: HbmTiming(data_ck=0), "data_ck must be at least 1, not 0"),
        (lambda: HbmTiming(lateral_links=5), "lateral_links must be from 1 to ports_per_switch"),
        (lambda: HbmTiming(channels_per_stack=2), "channels_per_stack must be at least ports_per_switch"),
        (lambda: HbmTiming(lateral_axi_cycles=(3, 1)), "lateral_axi_cycles must be a rising list"),
        (lambda: DdrTiming(address_map="G1 C7 R"), "address_map must be one with the bits"),
        (lambda: list(map_fields("G1 X5 R")), "address_map must be fields like"),
        (lambda: list(map_fields("G1 C5")), "address_map must be fields like"),
        (lambda: HostTiming(bytes_per_second=0.0), "bytes_per_second must be at least 1"),
        (lambda: HostTiming(read_in_flight_bytes=1024), "read_in_flight_bytes must be at least 4096"),
        (lambda: HostTiming(write_buffer_bytes=64), "write_buffer_bytes must be at least 1024"),
        (lambda: config(FastTiming(), channels=65), "channels must be from 1 to 64, not 65"),
        (
            lambda: config(FastTiming(), port_channels=()),
            "port_channels must be one entry for each of 1 to 64 ports",
        ),
        (
            lambda: config(FastTiming(), port_channels=(32,)),
            "port_channels must be a channel from 0 to 31, not 32",
        ),
        (lambda: config(FastTiming(), jitter_percent=96), "jitter_percent must be from 0 to 95, not 96"),
        (lambda: config(FastTiming(), mhz=0.5), "kernel_clock_mhz must be at least 1, not 0.5"),
    ],
)
def test_configurations_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(("field", "value"), [("name", "a b"), ("channel_bytes", 5000)])
def test_memory_configurations_are_refused(field, value):
    fields = {
        "name": "memory",
        "timing": FastTiming(),
        "channels": 1,
        "channel_bytes": 4096,
        "port_channels": (0,),
        "kernel_clock_mhz": 300.0,
    }
    with pytest.raises(InputError, match=field):
        MemoryConfig(**(fields | {field: value}))


def test_two_memories_need_two_names():
    with pytest.raises(InputError, match="name must be different for every memory"):
        parameter_text([config(FastTiming()), config(HbmTiming())])


def test_a_view_needs_an_open_memory():
    with NativeMemory(config=config(FastTiming())) as memory:
        with pytest.raises(InputError, match="name must be that of an open memory, not 'elsewhere'"):
            MemoryView("elsewhere", library=memory._library)
        with pytest.raises(InputError, match="name must be that of no memory that is open"):
            NativeMemory(config=config(FastTiming()))
