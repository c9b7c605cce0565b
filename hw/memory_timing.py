"""Timing of a memory: every parameter of the compiled models in ``sim/memory``, as immutable values.

A board file gives these under ``timing:``.  Defaults are those of the Alveo U280 and U55C where the two
agree. Units are in the names: ``_ck`` counts cycles of the memory's command clock, ``_axi_cycles`` cycles of
the clock of the memory's own AXI ports; kernels run on a third clock, and the models cross by simulated time.

Sources, by the labels used below:

* *Shuhai*: Wang et al., "Shuhai: Benchmarking High Bandwidth Memory on FPGAs", FCCM 2020 (U280).
* *PG276*: AMD, AXI High Bandwidth Memory Controller product guide.
* *Ramulator2*, *DRAMsim3*: the HBM2 and DDR4 organisations those simulators ship.
* *xbtest*: AMD xbtest 6.0 checklists of the U55C and U50LV.
* *PG302*: AMD, QDMA product guide (limits of the slave bridge).
* *derived*: follows from the others by arithmetic, or is the value that explains a published measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from hw.errors import InputError


def _check_numbers(timing: DramTiming | HostTiming) -> None:
    """Refuse what is not finite or is negative, and fractions where a whole number belongs."""
    for field in fields(timing):
        value = getattr(timing, field.name)
        if isinstance(value, (str, bool, tuple)):
            continue
        if not (math.isfinite(value) and value >= 0):
            raise InputError(field.name, value, "a finite number of at least 0")
        if field.type == "int" and value != int(value):
            raise InputError(field.name, value, "a whole number")


def map_fields(address_map: str) -> Iterator[tuple[str, int]]:
    """Split an address map into its fields, least significant first.

    Parameters
    ----------
    address_map
        Fields above the offset within a granule, least significant first: ``G`` bank group, ``B`` bank within
        the group, ``C`` column, each with its number of bits; ``R``, the row, comes last and takes what is
        left. ``"G1 C5 B2 G1 R"``: one bank-group bit, five column bits, two bank bits, another bank-group
        bit, the row.

    Errors
    ------
    `InputError` if the text is not of that form.
    """
    parts = address_map.split()
    legal = "fields like 'G1 C5 B2 G1 R': G, B or C with a number of bits, then R"
    if not parts or parts[-1] != "R":
        raise InputError("address_map", address_map, legal)
    for part in parts[:-1]:
        if part[0] not in "GBC" or not part[1:].isdecimal() or not 1 <= int(part[1:]) <= 16:
            raise InputError("address_map", address_map, legal)
        yield part[0], int(part[1:])


@dataclass(frozen=True, kw_only=True)
class DramTiming:
    """What HBM and DDR have in common: banks with rows behind a scheduler, reached through AXI ports.

    Members
    -------
    axi_clock_mhz, command_clock_mhz
        Clock of the memory's own AXI ports, and of its command bus (a whole multiple).
    granule_bytes
        What one column command moves.
    port_beat_bytes
        Width of one of the memory's own AXI ports.
    burst_granules
        Longest transfer the ports take as one; a longer burst of a kernel is split.
    bank_groups, banks_per_group
        Bank organisation of one channel.
    address_map
        Which address bits select what; see `map_fields`.
    cas_latency_ck, cas_write_latency_ck, data_ck
        Column command to data, reading and writing; length of the data.
    ccd_short_ck, ccd_long_ck
        Column command to column command, in different bank groups and in the same.
    rrd_short_ck, rrd_long_ck, faw_ck
        Activate to activate likewise; window in which at most four activates fall.
    rcd_read_ck, rcd_write_ck, rp_ck, ras_ck, rc_ck
        Activate to column command, precharge time, least time a row is open, activate to activate of one
        bank.
    wtr_short_ck, wtr_long_ck, read_to_write_gap_ck
        End of write data to a read command; idle data bus between read data and write data.
    write_recovery_ck, read_to_precharge_ck
        End of write data, and read command, to precharge.
    refresh_interval_ck, refresh_ck
        All-bank refresh: how often, and how long it blocks the channel.
    window_granules, write_window_granules
        Reads, and writes, the scheduler chooses from (first ready, then first come).
    read_buffer_granules, write_buffer_granules
        Data a channel holds for requests it has taken in.
    queue_bursts
        Bursts of each direction that wait in front of a channel's window.
    write_high_granules, direction_granules
        Buffered writes that end a run of reads; longest run of one direction while the other waits.
    refusals_limit
        Column commands that may overtake the oldest request.
    request_axi_cycles, response_axi_cycles
        Fixed path from port to command and from data to port, so that an idle read takes
        ``request + response + (cas_latency + data)`` on a page hit.
    write_response_axi_cycles
        Last write data taken by the channel to response at the port.
    fabric_request_ns, fabric_response_ns
        What the platform's interconnect between kernel and port adds each way; 0 with a kernel at the port
        itself.
    fabric_write_bytes, fabric_read_bytes
        Write data and read data the path between kernel and port can hold.
    port_read_bursts, port_write_bursts
        Bursts of a kernel port under way at once before its address channel is held.
    """

    axi_clock_mhz: float
    command_clock_mhz: float
    granule_bytes: int
    port_beat_bytes: int
    burst_granules: int
    bank_groups: int
    banks_per_group: int
    address_map: str
    cas_latency_ck: int
    cas_write_latency_ck: int
    data_ck: int
    ccd_short_ck: int
    ccd_long_ck: int
    rrd_short_ck: int
    rrd_long_ck: int
    faw_ck: int
    rcd_read_ck: int
    rcd_write_ck: int
    rp_ck: int
    ras_ck: int
    rc_ck: int
    wtr_short_ck: int
    wtr_long_ck: int
    read_to_write_gap_ck: int
    write_recovery_ck: int
    read_to_precharge_ck: int
    refresh_interval_ck: int
    refresh_ck: int
    request_axi_cycles: int
    response_axi_cycles: int
    write_response_axi_cycles: int
    fabric_request_ns: float
    fabric_response_ns: float
    fabric_write_bytes: int
    fabric_read_bytes: int
    window_granules: int = 32
    write_window_granules: int = 64
    read_buffer_granules: int = 128
    write_buffer_granules: int = 128
    queue_bursts: int = 32
    write_high_granules: int = 96
    direction_granules: int = 256
    refusals_limit: int = 256
    port_read_bursts: int = 64
    port_write_bursts: int = 64

    def __post_init__(self) -> None:
        _check_numbers(self)
        if self.axi_clock_mhz < 1 or self.command_clock_mhz < 1:
            raise InputError(
                "axi_clock_mhz, command_clock_mhz", (self.axi_clock_mhz, self.command_clock_mhz), "at least 1"
            )
        if self.command_clock_mhz % self.axi_clock_mhz:
            raise InputError(
                "command_clock_mhz",
                self.command_clock_mhz,
                f"a whole multiple of axi_clock_mhz ({self.axi_clock_mhz:g})",
            )
        for name in ("granule_bytes", "port_beat_bytes", "bank_groups", "banks_per_group"):
            value = getattr(self, name)
            if value < 1 or value & (value - 1):
                raise InputError(name, value, "a power of two")
        if not 8 <= self.granule_bytes <= 128:
            raise InputError("granule_bytes", self.granule_bytes, "from 8 to 128")
        if self.bank_groups * self.banks_per_group > 64:
            raise InputError(
                "bank_groups * banks_per_group", self.bank_groups * self.banks_per_group, "at most 64"
            )
        if not 1 <= self.burst_granules <= 64:
            raise InputError("burst_granules", self.burst_granules, "from 1 to 64")
        for name in ("window_granules", "write_window_granules"):
            if not 1 <= getattr(self, name) <= 64:
                raise InputError(name, getattr(self, name), "from 1 to 64")
        if self.read_buffer_granules < self.window_granules:
            raise InputError(
                "read_buffer_granules",
                self.read_buffer_granules,
                f"at least window_granules ({self.window_granules})",
            )
        if self.write_buffer_granules < self.write_high_granules:
            raise InputError(
                "write_buffer_granules",
                self.write_buffer_granules,
                f"at least write_high_granules ({self.write_high_granules})",
            )
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
            if getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "at least 1")
        if self.refresh_interval_ck <= self.refresh_ck + self.rc_ck:
            raise InputError("refresh_interval_ck", self.refresh_interval_ck, "more than refresh_ck + rc_ck")
        bits = {"G": 0, "B": 0, "C": 0}
        for letter, width in map_fields(self.address_map):
            bits[letter] += width
        if 2 ** bits["G"] != self.bank_groups or 2 ** bits["B"] != self.banks_per_group:
            raise InputError(
                "address_map", self.address_map, "one with the bits of bank_groups and banks_per_group"
            )


@dataclass(frozen=True, kw_only=True)
class HbmTiming(DramTiming):
    """HBM2 behind the switch of an UltraScale+ device: 32 pseudo-channels, each with its own AXI3 port.

    Members (besides `DramTiming`'s)
    -------
    ports_per_switch
        Ports, and channels, of one mini-switch (PG276: 4).
    channels_per_stack
        Channels of one HBM stack (16).
    switch_axi_cycles
        What the switch adds to a read of the port's own mini-switch (Shuhai: 7); 0 when it is off.
    lateral_axi_cycles
        What a read of a mini-switch that many places away takes more (Shuhai, up to 3 places; the farthest
        adds 22).
    stack_axi_cycles
        What crossing from one stack to the other adds (Shuhai: the step from 3 to 4 places, derived).
    lateral_links
        Links between neighbouring mini-switches in each direction (PG276: 2, one beat a cycle each).
    lateral_dead_axi_cycles
        Lost when such a link changes its write master (PG276: 1).
    card_bytes_per_second
        Cap on all channels together, for cards whose power supply has one; 0 for none.

    Notes
    -----
    Timing in ns at 900 MHz and 4 Gbit a channel: *Ramulator2* and *DRAMsim3*, RC 50 ns and FAW 16 after
    *Shuhai*'s and AMD's random-access figures.  RFC is 234 for the 8 GB cards; a U55C (8 Gbit a channel) has
    315. The path is *Shuhai*'s 48-cycle page hit with the switch off; its split into request and response,
    and the write response, are *derived* from the write responses of *xbtest*.
    """

    axi_clock_mhz: float = 450.0
    command_clock_mhz: float = 900.0
    granule_bytes: int = 32
    port_beat_bytes: int = 32
    burst_granules: int = 16
    bank_groups: int = 4
    banks_per_group: int = 4
    address_map: str = "G1 C5 B2 G1 R"
    cas_latency_ck: int = 14
    cas_write_latency_ck: int = 4
    data_ck: int = 2
    ccd_short_ck: int = 2
    ccd_long_ck: int = 4
    rrd_short_ck: int = 4
    rrd_long_ck: int = 4
    faw_ck: int = 16
    rcd_read_ck: int = 14
    rcd_write_ck: int = 12
    rp_ck: int = 14
    ras_ck: int = 31
    rc_ck: int = 45
    wtr_short_ck: int = 6
    wtr_long_ck: int = 8
    read_to_write_gap_ck: int = 2
    write_recovery_ck: int = 15
    read_to_precharge_ck: int = 5
    refresh_interval_ck: int = 3510
    refresh_ck: int = 234
    request_axi_cycles: int = 14
    response_axi_cycles: int = 26
    write_response_axi_cycles: int = 4
    fabric_request_ns: float = 18.0
    fabric_response_ns: float = 22.0
    fabric_write_bytes: int = 1536
    fabric_read_bytes: int = 4096
    ports_per_switch: int = 4
    channels_per_stack: int = 16
    switch_axi_cycles: int = 7
    lateral_axi_cycles: tuple[int, ...] = (0, 1, 3, 5, 7, 9, 11, 13)
    stack_axi_cycles: int = 9
    lateral_links: int = 2
    lateral_dead_axi_cycles: int = 1
    card_bytes_per_second: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.lateral_links <= self.ports_per_switch:
            raise InputError("lateral_links", self.lateral_links, "from 1 to ports_per_switch")
        if self.channels_per_stack < self.ports_per_switch:
            raise InputError("channels_per_stack", self.channels_per_stack, "at least ports_per_switch")
        distances = self.lateral_axi_cycles
        if not distances or min(distances) < 0 or list(distances) != sorted(distances):
            raise InputError(
                "lateral_axi_cycles", distances, "a rising list of whole numbers, one a distance"
            )


@dataclass(frozen=True, kw_only=True)
class DdrTiming(DramTiming):
    """DDR4 or LPDDR4 behind its controller; ports of any number share its channels without a switch.

    Notes
    -----
    Defaults are one 64-bit DDR4-2400 channel of an Alveo card with its 512-bit port at 300 MHz: *Shuhai*'s
    idle reads of 22, 27 and 32 cycles; timing after *Ramulator2*'s DDR4-2400R and the 8 Gbit x8 parts' RFC of
    350 ns.
    """

    axi_clock_mhz: float = 300.0
    command_clock_mhz: float = 1200.0
    granule_bytes: int = 64
    port_beat_bytes: int = 64
    burst_granules: int = 64
    bank_groups: int = 4
    banks_per_group: int = 4
    address_map: str = "G1 C7 G1 B2 R"
    cas_latency_ck: int = 16
    cas_write_latency_ck: int = 12
    data_ck: int = 4
    ccd_short_ck: int = 4
    ccd_long_ck: int = 6
    rrd_short_ck: int = 4
    rrd_long_ck: int = 6
    faw_ck: int = 26
    rcd_read_ck: int = 16
    rcd_write_ck: int = 16
    rp_ck: int = 16
    ras_ck: int = 39
    rc_ck: int = 55
    wtr_short_ck: int = 3
    wtr_long_ck: int = 9
    read_to_write_gap_ck: int = 2
    write_recovery_ck: int = 18
    read_to_precharge_ck: int = 9
    refresh_interval_ck: int = 9360
    refresh_ck: int = 420
    request_axi_cycles: int = 7
    response_axi_cycles: int = 10
    write_response_axi_cycles: int = 5
    write_buffer_granules: int = 64
    write_high_granules: int = 48
    direction_granules: int = 64
    fabric_request_ns: float = 0.0
    fabric_response_ns: float = 0.0
    fabric_write_bytes: int = 4096
    fabric_read_bytes: int = 8192


@dataclass(frozen=True, kw_only=True)
class HostTiming:
    """The host's memory over PCIe, through the slave bridge of an Alveo card; both directions at full rate.

    Members
    -------
    bytes_per_second
        Each direction (*xbtest*, U55C and U250: 12178 MiB/s).
    read_bursts, write_bursts
        Bursts under way at once (PG302: 32 and 32).
    read_in_flight_bytes
        Read data requested and not yet delivered (*derived*: 12.77 GB/s x 3.835 us).
    first_data_ns
        Idle read request to first data (*derived* from 782 ns for a serial 4 KiB read).
    write_response_ns
        Last write data sent to response (*xbtest*: 829 and 881 ns, of which 108 ns are a burst's own queue).
    write_buffer_bytes
        Write data the bridge takes in ahead of the link.
    cached_bytes
        What of the buffers the host serves from its cache (*derived*: buffers of 2 MB are not slowed, of 16
        MB are).
    large_bytes_per_second, large_shared_bytes_per_second
        Of buffers far larger: each direction alone, and both together (AMD's examples at 256 MB: 10.70 and
        11.59 GiB/s).  Between, the share that is not cached counts.
    """

    bytes_per_second: float = 12.77e9
    read_bursts: int = 32
    write_bursts: int = 32
    read_in_flight_bytes: int = 49152
    first_data_ns: float = 450.0
    write_response_ns: float = 750.0
    write_buffer_bytes: int = 4096
    cached_bytes: int = 8 * 2**20
    large_bytes_per_second: float = 11.4e9
    large_shared_bytes_per_second: float = 12.45e9

    def __post_init__(self) -> None:
        _check_numbers(self)
        for name in (
            "bytes_per_second",
            "read_bursts",
            "write_bursts",
            "large_bytes_per_second",
            "large_shared_bytes_per_second",
        ):
            if getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "at least 1")
        if self.read_in_flight_bytes < 4096:
            raise InputError(
                "read_in_flight_bytes", self.read_in_flight_bytes, "at least 4096: one longest burst"
            )
        if self.write_buffer_bytes < 1024:
            raise InputError("write_buffer_bytes", self.write_buffer_bytes, "at least 1024")
