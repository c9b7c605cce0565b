"""Timing of a memory: every parameter of the compiled models in ``sim/memory``, as immutable values.

A board file sets them under ``timing:``.  Defaults are those of the Alveo U280 and U55C where the two agree.
Names end in their units: ``_ck`` counts cycles of the memory's command clock, ``_axi_cycles`` cycles of the
clock of the memory's own AXI ports.  Kernels run on a third clock; clock crossings follow simulated time.

Sources, by the labels used below:

* *Shuhai*: Wang et al., "Shuhai: Benchmarking High Bandwidth Memory on FPGAs", FCCM 2020 (U280).
* *PG276*: AMD, AXI High Bandwidth Memory Controller product guide.
* *Ramulator2*, *DRAMsim3*: the HBM2 and DDR4 organisations those simulators ship.
* *xbtest*: AMD xbtest 6.0 checklists of the U55C and U50LV.
* *PG302*: AMD, QDMA product guide (limits of the slave bridge).
* *derived*: computed from the others, or fitted to a published measurement.
"""

from dataclasses import dataclass

from hw.board.dram_timing import DramTiming, check_numbers
from hw.errors import InputError, check_range


@dataclass(frozen=True, kw_only=True)
class HbmTiming(DramTiming):
    """HBM2 behind the switch of an UltraScale+ device: 32 pseudo-channels, each with its own AXI3 port.

    Notes
    -----
    Timing in ns at 900 MHz and 4 Gbit a channel: *Ramulator2* and *DRAMsim3*, RC 50 ns and FAW 16 after
    *Shuhai*'s and AMD's random-access figures.  RFC is 234 for the 8 GB cards; a U55C (8 Gbit a channel) has
    315. The path is *Shuhai*'s 48-cycle page hit with the switch off.  Its split into request and response,
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
    request_axi_cycles: int = 9
    response_axi_cycles: int = 31
    write_response_axi_cycles: int = 3
    fabric_request_ns: float = 18.0
    fabric_response_ns: float = 22.0
    fabric_write_bytes: int = 2048
    fabric_read_bytes: int = 4096
    ports_per_switch: int = 4  #: Ports, and channels, of one mini-switch (PG276: 4).
    channels_per_stack: int = 16  #: Channels of one HBM stack (16).
    #: Switch delay of a read at the port's own mini-switch (Shuhai: 7); 0 when it is off.
    switch_axi_cycles: int = 7
    #: Additional delay by distance in mini-switches (Shuhai, up to 3; the farthest adds 22).
    lateral_axi_cycles: tuple[int, ...] = (0, 1, 3, 5, 7, 9, 11, 13)
    #: Additional delay of the other stack (Shuhai: the step from distance 3 to 4, derived).
    stack_axi_cycles: int = 9
    #: Links between neighbouring mini-switches in each direction (PG276: 2, one beat a cycle each).
    lateral_links: int = 2
    lateral_dead_axi_cycles: int = 1  #: Lost when such a link changes its write master (PG276: 1).
    #: Cap on all channels together, for cards whose power supply has one; 0 for none.
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

    @property
    def switch_ns(self) -> float:
        """Switch delay, both ways together, to a channel of the port's own mini-switch."""
        return 1e3 * self.switch_axi_cycles / self.axi_clock_mhz


@dataclass(frozen=True, kw_only=True)
class DdrTiming(DramTiming):
    """DDR4 or LPDDR4 behind its controller; any number of ports share its channels without a switch.

    Notes
    -----
    Defaults are one 64-bit DDR4-2400 channel of an Alveo card with its 512-bit port at 300 MHz.  Idle reads
    take *Shuhai*'s 22, 27 and 32 cycles.  Timing follows *Ramulator2*'s DDR4-2400R; RFC is the 350 ns of 8
    Gbit x8 parts.
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
    """The host's memory over PCIe, through an Alveo card's slave bridge; both directions at full rate."""

    bytes_per_second: float = 12.77e9  #: Each direction (*xbtest*, U55C and U250: 12178 MiB/s).
    #: ``read_bursts``, ``write_bursts``: most outstanding bursts (PG302: 32 and 32).
    read_bursts: int = 32
    write_bursts: int = 32
    #: Read data requested and not yet delivered (*derived*: 12.77 GB/s x 3.835 us).
    read_in_flight_bytes: int = 49152
    #: Idle read request to first data (*derived* from 782 ns for a serial 4 KiB read).
    first_data_ns: float = 450.0
    #: Last write data sent to response (*xbtest*: 829 and 881 ns, of which 108 ns are a burst's own queue).
    write_response_ns: float = 750.0
    write_buffer_bytes: int = 4096  #: Write data that the bridge buffers ahead of the link.
    #: Buffers that the host serves from its cache (*derived*: 2 MB are not slowed, 16 MB are).
    cached_bytes: int = 8 * 2**20
    #: ``large_bytes_per_second``, ``large_shared_bytes_per_second``: rates of far larger buffers: of one
    #: direction alone, and of both together (AMD's examples at 256 MB: 10.70 and 11.59 GiB/s).  Sizes in
    #: between are interpolated by their uncached share.
    large_bytes_per_second: float = 11.4e9
    large_shared_bytes_per_second: float = 12.45e9

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in (
            "bytes_per_second",
            "read_bursts",
            "write_bursts",
            "large_bytes_per_second",
            "large_shared_bytes_per_second",
        ):
            check_range(name, getattr(self, name), 1)
        if self.read_in_flight_bytes < 4096:
            raise InputError(
                "read_in_flight_bytes", self.read_in_flight_bytes, "at least 4096: one longest burst"
            )
        check_range("write_buffer_bytes", self.write_buffer_bytes, 1024)

    @property
    def idle_read_ns(self) -> float:
        """Time from a read address to its first data, on an idle link."""
        return self.first_data_ns

    @property
    def idle_write_ns(self) -> float:
        """Time from the last write data to the response, on an idle link."""
        return self.write_response_ns

    def behind_ns(self, beat_bytes: int) -> float:
        """Return 0: a link moves a beat at once."""
        return 0.0

    @property
    def refresh_wait_ns(self) -> float:
        """A link does not refresh."""
        return 0.0
