"""Boards: a card's resources, memories and clock for a kernel, as immutable values.

The numbers live in ``boards/*.yaml``, one file a board, each with its source; `hw.board.form` reads and
checks the files.  Rules that relate numbers to each other are here, so that they also hold for boards made in
tests.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

from hw.board.dram_timing import DramTiming
from hw.board.memory_timing import DdrTiming, HbmTiming, HostTiming
from hw.board.resources import Resources
from hw.errors import InputError, check_one_of, check_power_of_two, check_whole

Kind = Literal["hbm2", "ddr4", "lpddr4", "host"]
Protocol = Literal["axi3", "axi4"]
Family = Literal["alveo", "zynq"]
MemoryTiming = HbmTiming | DdrTiming | HostTiming

#: Longest burst each protocol can express, in beats.
LONGEST_BURST: dict[str, int] = {"axi3": 16, "axi4": 256}
#: Most channels of a memory, twice those of two HBM stacks; the compiled memory models have no more.
MOST_CHANNELS = 64
#: Most dies of a device: no UltraScale+ device has more.
MOST_SLRS = 4
_BOARD_PART = re.compile(r"[\w.-]+:[\w.-]+(:[\w.-]+:[\w.-]+)?", re.ASCII)
#: Class of a memory's timing parameters, by its kind.
TIMING_OF_KIND: dict[str, type[MemoryTiming]] = {
    "hbm2": HbmTiming,
    "ddr4": DdrTiming,
    "lpddr4": DdrTiming,
    "host": HostTiming,
}


def _positive(field: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(field, value, "greater than 0")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """One memory a kernel can reach through AXI ports."""

    name: str  #: Name in listings, reports and the connectivity file (``"hbm"``).
    kind: Kind  #: ``"hbm2"``, ``"ddr4"``, ``"lpddr4"``, or ``"host"`` for the host's memory behind PCIe.
    #: Independent channels (HBM pseudo-channels); a power of two.  Their address spaces follow one another.
    channels: int
    port_data_width: int  #: Width of one AXI port in bits.
    channel_bytes: int  #: Capacity of one channel.
    #: ``peak_bytes_per_second``, ``realistic_bytes_per_second``: of all channels together: the pins' limit,
    #: and the highest measurement of a kernel.
    peak_bytes_per_second: float
    realistic_bytes_per_second: float
    burst_beats: int  #: Longest burst a port takes, in beats.
    protocol: Protocol  #: ``"axi3"`` or ``"axi4"``.
    timing: MemoryTiming  #: Parameters of the simulated memory; see `hw.board.memory_timing`.
    slr: int = 0  #: The die of its ports, and so of the logic that drives them.

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise InputError("name", self.name, "a name of letters, digits and underscores")
        check_one_of("kind", self.kind, TIMING_OF_KIND)
        check_one_of("protocol", self.protocol, LONGEST_BURST)
        check_whole("channels", self.channels, 1, MOST_CHANNELS)
        check_power_of_two("channels", self.channels, 1, MOST_CHANNELS)
        if self.port_data_width not in (32, 64, 128, 256, 512, 1024):
            raise InputError("port_data_width", self.port_data_width, "a power of two from 32 to 1024 bit")
        check_whole("slr", self.slr, 0)
        check_whole("channel_bytes", self.channel_bytes, 1)
        if self.channel_bytes % 4096:
            raise InputError("channel_bytes", self.channel_bytes, "a multiple of 4096")
        _positive("peak_bytes_per_second", self.peak_bytes_per_second)
        _positive("realistic_bytes_per_second", self.realistic_bytes_per_second)
        if self.realistic_bytes_per_second > self.peak_bytes_per_second:
            raise InputError(
                "realistic_bytes_per_second",
                self.realistic_bytes_per_second,
                f"at most the peak of {self.peak_bytes_per_second / 1e9:g} GB/s",
            )
        check_whole("burst_beats", self.burst_beats, 1)
        longest = min(LONGEST_BURST[self.protocol], 4096 * 8 // self.port_data_width)
        if self.burst_beats > longest:
            raise InputError(
                "burst_beats",
                self.burst_beats,
                f"at most {longest}, what {self.protocol} and 4 KiB allow at {self.port_data_width} bit",
            )
        needed = TIMING_OF_KIND[self.kind]
        if type(self.timing) is not needed:
            raise InputError("timing", type(self.timing).__name__, f"{needed.__name__} for {self.kind}")

    @property
    def total_bytes(self) -> int:
        """Capacity of all channels."""
        return self.channels * self.channel_bytes

    @property
    def channel_bytes_per_second(self) -> float:
        """One channel's share of the realistic rate."""
        return self.realistic_bytes_per_second / self.channels


@dataclass(frozen=True, kw_only=True)
class ClockBudget:
    """Deductions from the clock period of a path between registers; see `Board.path_budget_ps`."""

    #: ``uncertainty_ps``, ``skew_ps``: margins for jitter, and for differences in clock arrival.
    uncertainty_ps: float
    skew_ps: float
    slr_crossing_ps: float  #: Additional delay of a net between two dies.
    delay_factor: float  #: Delays relative to a device of speed grade -2 at 0.85 V.

    def __post_init__(self) -> None:
        for field in ("uncertainty_ps", "skew_ps", "slr_crossing_ps", "delay_factor"):
            _positive(field, getattr(self, field))


@dataclass(frozen=True, kw_only=True)
class Board:
    """A card or a development board."""

    name: str  #: Name on the command line; the stem of its file.
    title: str  #: Name in print.
    part: str  #: The device, as Vivado spells it.
    #: ``"alveo"``: kernels are linked by Vitis to ``platform``; ``"zynq"``: packaged as IP for Vivado.
    family: Family
    platform: str | None  #: Vitis platform, or None on Zynq.
    #: Vivado's name of a Zynq board: ``vendor:board``, or with part and version, ``vendor:board:part0:1.4``.
    #: None if it is ``name``, of any vendor.
    board_part: str | None = None
    #: ``device``, ``user``: resources of the device, and the user's share of them.
    device: Resources
    user: Resources
    slrs: int  #: Super logic regions (dies) of the device.
    clock_mhz: float  #: Kernel clock unless the user says otherwise.
    budget: ClockBudget  #: Deductions from the period, and the device's speed.
    memories: tuple[Memory, ...]  #: All memories; kernels keep their data in the first.

    def __post_init__(self) -> None:
        for field in ("name", "title", "part"):
            if not getattr(self, field).strip():
                raise InputError(field, getattr(self, field), "given")
        check_one_of("family", self.family, ("alveo", "zynq"))
        if (self.family == "alveo") != (self.platform is not None):
            raise InputError("platform", self.platform, "given for an alveo board and only for one")
        self._check_board_part()
        over = self.user.first_over(self.device)
        if over is not None:
            raise InputError(
                f"user.{over}", getattr(self.user, over), f"at most the device's {getattr(self.device, over)}"
            )
        check_whole("slrs", self.slrs, 1, MOST_SLRS)
        _positive("clock_mhz", self.clock_mhz)
        if self.clock_mhz > 1000:
            raise InputError(
                "clock_mhz", self.clock_mhz, "at most 1000 MHz, faster than any UltraScale+ fabric"
            )
        if self.path_budget_ps <= 0:
            raise InputError(
                "clock_mhz", self.clock_mhz, "slow enough for uncertainty and skew of the budget"
            )
        names = [memory.name for memory in self.memories]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise InputError(f"memories.{index}.name", name, "different from the names of other memories")
        for index, memory in enumerate(self.memories):
            if memory.slr >= self.slrs:
                raise InputError(f"memories.{index}.slr", memory.slr, f"below slrs, {self.slrs}")
        if not self.memories or self.memories[0].kind == "host":
            raise InputError("memories", names, "a list that begins with a memory of the board")
        if sum(memory.kind == "host" for memory in self.memories) > 1:
            raise InputError("memories", names, "a list with at most one of kind host")

    def _check_board_part(self) -> None:
        if self.board_part is None:
            return
        if self.family != "zynq":
            raise InputError("board_part", self.board_part, "given for a zynq board only")
        if not _BOARD_PART.fullmatch(self.board_part):
            legal = "vendor:board or vendor:board:part:version, each of letters, digits and any of . _ -"
            raise InputError("board_part", self.board_part, legal)

    @property
    def board_part_pattern(self) -> str:
        """The pattern that matches Vivado's name of the board, in any version unless it is given."""
        name = self.board_part or f"*:{self.name}"
        return name if name.count(":") == 3 else f"{name}:*"

    @property
    def path_budget_ps(self) -> float:
        """Time a path between registers may take: the period less uncertainty and skew."""
        return 1e6 / self.clock_mhz - self.budget.uncertainty_ps - self.budget.skew_ps

    @property
    def die(self) -> Resources:
        """A die's even share of the user's resources."""
        return Resources(**{name: count // self.slrs for name, count in self.user.items()})

    @property
    def memory(self) -> Memory:
        """The memory of the kernels' data."""
        return self.memories[0]

    @property
    def dram_timing(self) -> DramTiming:
        """The timing of the kernels' memory, which is not the host's."""
        timing = self.memory.timing
        assert isinstance(timing, DramTiming)
        return timing

    @property
    def host(self) -> Memory | None:
        """The host's memory behind PCIe, or None."""
        return next((memory for memory in self.memories if memory.kind == "host"), None)

    def cycles(self, nanoseconds: float) -> float:
        """Convert a time into cycles of the kernel clock."""
        return nanoseconds * self.clock_mhz / 1e3

    @property
    def idle_read_cycles(self) -> int:
        """Cycles from a read address on the bus to its first data, of the kernels' idle memory.

        Address and data are both sampled at the end of their cycle.
        """
        return self.beat_read_cycles(1)

    @property
    def idle_write_cycles(self) -> int:
        """Whole cycles from the last write data on the bus to the response, of the kernels' idle memory."""
        return self.beat_write_cycles(1)

    def beat_read_cycles(self, beat_bytes: int) -> int:
        """Return `idle_read_cycles` of a beat of ``beat_bytes``, which the memory may deliver in parts."""
        timing = self.memory.timing
        return 1 + math.floor(self.cycles(timing.idle_read_ns + timing.behind_ns(beat_bytes)))

    def beat_write_cycles(self, beat_bytes: int) -> int:
        """Return `idle_write_cycles` of a beat of ``beat_bytes``."""
        timing = self.memory.timing
        return 1 + math.ceil(self.cycles(timing.idle_write_ns + timing.behind_ns(beat_bytes)))

    @property
    def refresh_wait_cycles(self) -> float:
        """Mean cycles that a read of the kernels' memory waits for a refresh."""
        return self.cycles(self.memory.timing.refresh_wait_ns)

    @property
    def channel_bytes_per_cycle(self) -> float:
        """Realistic bytes per kernel cycle of a channel of the kernels' memory."""
        return self.memory.channel_bytes_per_second / (self.clock_mhz * 1e6)
