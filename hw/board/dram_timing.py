"""Timing of any DRAM: the common part of HBM and DDR; `hw.board.memory_timing` has the kinds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from hw.errors import InputError, check_power_of_two, check_range


def check_numbers(timing: Any) -> None:
    """Check the fields of a timing dataclass.

    Errors
    ------
    `InputError` for values that are negative or not finite, and for fractions where only integers are legal.
    """
    for field in fields(timing):
        value = getattr(timing, field.name)
        if isinstance(value, (str, bool, tuple)):
            continue
        if not (math.isfinite(value) and value >= 0):
            raise InputError(field.name, value, "a finite number of at least 0")
        if field.type is int and value != int(value):
            raise InputError(field.name, value, "a whole number")


def map_fields(address_map: str) -> Iterator[tuple[str, int]]:
    """Split an address map into its fields, least significant first.

    ``address_map``: fields above the offset within a granule, each with its number of bits: ``G`` bank group,
    ``B`` bank within the group, ``C`` column, ``R`` row.  There is one row field; as the last it needs no
    number and takes the remaining bits.  Example ``"G1 C5 B2 G1 R"``: one bank-group bit, five column bits,
    two bank bits, another bank-group bit, the row.

    Yields
    ------
    Letter and bits of each field; 64 bits for a row without a number.

    Errors
    ------
    `InputError` if the text is not of that form.
    """
    parts = address_map.split()
    legal = "fields like 'G1 C5 B2 G1 R': G, B, C and one R, each with a number of bits"
    if [part[0] for part in parts].count("R") != 1:
        raise InputError("address_map", address_map, legal)
    for index, part in enumerate(parts):
        if part == "R" and index == len(parts) - 1:
            yield "R", 64
            return
        if part[0] not in "GBCR" or not part[1:].isdecimal() or not 1 <= int(part[1:]) <= 32:
            raise InputError("address_map", address_map, legal)
        yield part[0], int(part[1:])


@dataclass(frozen=True, kw_only=True)
class DramTiming:
    """The common part of HBM and DDR: banks with rows behind a scheduler, reached through AXI ports."""

    #: ``axi_clock_mhz``, ``command_clock_mhz``: clock of the memory's own AXI ports, and of its command bus
    #: (a whole multiple).
    axi_clock_mhz: float
    command_clock_mhz: float
    granule_bytes: int  #: Bytes of one column command.
    port_beat_bytes: int  #: Width of one of the memory's own AXI ports.
    burst_granules: int  #: Longest burst of the ports; a longer burst of a kernel is split.
    #: ``bank_groups``, ``banks_per_group``: bank organisation of one channel.
    bank_groups: int
    banks_per_group: int
    address_map: str  #: Assignment of address bits; see `map_fields`.
    #: ``cas_latency_ck``, ``cas_write_latency_ck``, ``data_ck``: column command to data, reading and writing;
    #: length of the data.
    cas_latency_ck: int
    cas_write_latency_ck: int
    data_ck: int
    #: ``ccd_short_ck``, ``ccd_long_ck``: column command to column command, in different bank groups and in
    #: the same.
    ccd_short_ck: int
    ccd_long_ck: int
    #: ``rrd_short_ck``, ``rrd_long_ck``, ``faw_ck``: activate to activate, in different bank groups and in
    #: the same; window in which at most four activates fall.
    rrd_short_ck: int
    rrd_long_ck: int
    faw_ck: int
    #: ``rcd_read_ck``, ``rcd_write_ck``, ``rp_ck``, ``ras_ck``, ``rc_ck``: activate to column command,
    #: precharge time, least time a row is open, activate to activate of one bank.
    rcd_read_ck: int
    rcd_write_ck: int
    rp_ck: int
    ras_ck: int
    rc_ck: int
    #: ``wtr_short_ck``, ``wtr_long_ck``, ``read_to_write_gap_ck``: end of write data to a read command; idle
    #: data bus between read data and write data.
    wtr_short_ck: int
    wtr_long_ck: int
    read_to_write_gap_ck: int
    #: ``write_recovery_ck``, ``read_to_precharge_ck``: end of write data, and read command, to precharge.
    write_recovery_ck: int
    read_to_precharge_ck: int
    #: ``refresh_interval_ck``, ``refresh_ck``: all-bank refresh: its interval, and the time for which it
    #: blocks the channel.
    refresh_interval_ck: int
    refresh_ck: int
    #: ``request_axi_cycles``, ``response_axi_cycles``: fixed path from port to command and from data to port.
    #: An idle read takes ``request + response + (cas_latency + data)`` on a page hit.
    request_axi_cycles: int
    response_axi_cycles: int
    write_response_axi_cycles: int  #: Last write data accepted by the channel to response at the port.
    #: ``fabric_request_ns``, ``fabric_response_ns``: delay of the platform's interconnect between kernel and
    #: port, each way; 0 with a kernel at the port itself.
    fabric_request_ns: float
    fabric_response_ns: float
    #: ``fabric_write_bytes``, ``fabric_read_bytes``: buffers for write data and read data between kernel and
    #: port.
    fabric_write_bytes: int
    fabric_read_bytes: int
    #: ``window_granules``, ``write_window_granules``: the scheduler's window of reads, and of writes (first
    #: ready, then first come).
    window_granules: int = 32
    write_window_granules: int = 64
    #: ``read_buffer_granules``, ``write_buffer_granules``: a channel's buffers for data of accepted requests.
    read_buffer_granules: int = 128
    write_buffer_granules: int = 128
    queue_bursts: int = 32  #: Bursts of each direction that wait in front of a channel's window.
    #: ``write_high_granules``, ``direction_granules``: buffered writes that end a run of reads; longest run
    #: of one direction while the other waits.
    write_high_granules: int = 96
    direction_granules: int = 256
    refusals_limit: int = 256  #: Column commands that may overtake the oldest request.
    #: ``port_read_bursts``, ``port_write_bursts``: outstanding bursts of a kernel port at which its address
    #: channel stalls.
    port_read_bursts: int = 64
    port_write_bursts: int = 64

    def __post_init__(self) -> None:
        check_numbers(self)
        clocks = self.axi_clock_mhz, self.command_clock_mhz
        if min(clocks) < 1:
            raise InputError("axi_clock_mhz, command_clock_mhz", clocks, "at least 1")
        if self.command_clock_mhz % self.axi_clock_mhz:
            legal = f"a whole multiple of axi_clock_mhz ({self.axi_clock_mhz:g})"
            raise InputError("command_clock_mhz", self.command_clock_mhz, legal)
        for name in ("granule_bytes", "port_beat_bytes", "bank_groups", "banks_per_group"):
            check_power_of_two(name, getattr(self, name))
        check_range("granule_bytes", self.granule_bytes, 8, 128)
        if (banks := self.bank_groups * self.banks_per_group) > 64:
            raise InputError("bank_groups * banks_per_group", banks, "at most 64")
        check_range("burst_granules", self.burst_granules, 1, 64)
        for name in ("window_granules", "write_window_granules"):
            check_range(name, getattr(self, name), 1, 64)
        for name, other in (
            ("read_buffer_granules", "window_granules"),
            ("write_buffer_granules", "write_high_granules"),
        ):
            if getattr(self, name) < (least := getattr(self, other)):
                raise InputError(name, getattr(self, name), f"at least {other} ({least})")
        for name in (
            "queue_bursts",
            "write_high_granules",
            "direction_granules",
            "refusals_limit",
            "data_ck",
            "port_read_bursts",
            "port_write_bursts",
            "request_axi_cycles",
            "response_axi_cycles",
        ):
            check_range(name, getattr(self, name), 1)
        if self.refresh_interval_ck <= self.refresh_ck + self.rc_ck:
            raise InputError("refresh_interval_ck", self.refresh_interval_ck, "more than refresh_ck + rc_ck")
        bits = {"G": 0, "B": 0, "C": 0, "R": 0}
        for letter, width in map_fields(self.address_map):
            bits[letter] += width
        if 2 ** bits["G"] != self.bank_groups or 2 ** bits["B"] != self.banks_per_group:
            raise InputError(
                "address_map", self.address_map, "one with the bits of bank_groups and banks_per_group"
            )

    @property
    def column_mask(self) -> int:
        """Address bits within a row of a bank."""
        shift = self.granule_bytes.bit_length() - 1
        mask = (1 << shift) - 1
        for letter, bits in map_fields(self.address_map):
            if letter == "C":
                mask |= ((1 << bits) - 1) << shift
            shift += bits
        return mask

    @property
    def switch_ns(self) -> float:
        """Additional delay between port and channel, both ways together; none here."""
        return 0.0

    @property
    def request_ns(self) -> float:
        """From an address, or the last write data, on the kernel's bus to the idle channel's command."""
        return (
            self.fabric_request_ns + 1e3 * self.request_axi_cycles / self.axi_clock_mhz + self.switch_ns / 2
        )

    @property
    def read_response_ns(self) -> float:
        """From a read command of an idle channel, whose row is closed, to the data on the kernel's bus."""
        command_ck = self.rcd_read_ck + self.cas_latency_ck + self.data_ck
        return (
            self.fabric_response_ns
            + 1e3 * self.response_axi_cycles / self.axi_clock_mhz
            + 1e3 * command_ck / self.command_clock_mhz
            + self.switch_ns / 2
        )

    @property
    def write_response_ns(self) -> float:
        """From write data taken by the channel to the response on the kernel's bus."""
        back_ns = 1e3 * self.write_response_axi_cycles / self.axi_clock_mhz
        return self.fabric_response_ns + back_ns + self.switch_ns / 2

    @property
    def idle_read_ns(self) -> float:
        """From a read address to its first data, of idle memory."""
        return self.request_ns + self.read_response_ns

    def behind_ns(self, beat_bytes: int) -> float:
        """Return the delay from the first granule of ``beat_bytes`` to the last."""
        granules = max(1, -(-beat_bytes // self.granule_bytes))
        return (granules - 1) * 1e3 * self.ccd_long_ck / self.command_clock_mhz

    @property
    def open_read_ns(self) -> float:
        """Idle read with an open row."""
        return self.idle_read_ns - 1e3 * self.rcd_read_ck / self.command_clock_mhz

    @property
    def refresh_ns(self) -> float:
        """Time for which a refresh blocks a channel: its rows are closed, then refreshed."""
        return 1e3 * (self.rp_ck + self.refresh_ck) / self.command_clock_mhz

    @property
    def refresh_interval_ns(self) -> float:
        """Time from one refresh to the next."""
        return 1e3 * self.refresh_interval_ck / self.command_clock_mhz

    @property
    def idle_write_ns(self) -> float:
        """From the last write data to the response, of idle memory."""
        return self.request_ns + self.write_response_ns

    @property
    def turnaround_ns(self) -> float:
        """Data bus time lost by a change to writes and back.  The write latency cancels: one change loses it,
        the other gains it.
        """
        lost = self.cas_latency_ck + self.read_to_write_gap_ck + 2 * self.data_ck + self.wtr_long_ck
        return 1e3 * lost / self.command_clock_mhz

    @property
    def refresh_wait_ns(self) -> float:
        """Mean time that a read at a random moment waits for a refresh of its channel."""
        return 1e3 / self.command_clock_mhz * self.refresh_ck**2 / (2 * self.refresh_interval_ck)
