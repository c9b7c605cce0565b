"""The activity of a launch: all counts that cost energy."""

from collections.abc import Sequence
from dataclasses import dataclass

from hw.board.resources import RamWords, Resources
from hw.errors import check_range


@dataclass(frozen=True, kw_only=True)
class MemoryActivity:
    """The traffic of one memory in a launch."""

    #: ``name``, ``kind``: as those of `hw.board.Memory`.
    name: str
    kind: str
    channels: int  #: Channels that are kept ready, used or not.
    row_bytes: int  #: Bytes of a row; 0 for the host's memory.
    #: ``read_bytes``, ``write_bytes``: bytes that cross its pins.
    read_bytes: float = 0.0
    write_bytes: float = 0.0
    activates: float | None = None  #: Rows that were opened; None where nobody counted them.

    def __post_init__(self) -> None:
        for name in ("channels", "row_bytes", "read_bytes", "write_bytes"):
            check_range(name, getattr(self, name), 0)
        check_range("activates", self.rows, 0)

    @property
    def rows(self) -> float:
        """Rows that were opened; where nobody counted, each once for all of its bytes, as by streams."""
        if self.activates is not None:
            return self.activates
        return (self.read_bytes + self.write_bytes) / self.row_bytes if self.row_bytes else 0.0


@dataclass(frozen=True, kw_only=True)
class Activity:
    """The work of a kernel and its memories in a launch."""

    clock_mhz: float
    cycles: float  #: From start to done.
    #: ``busy_cycles``, ``multiply_cycles``: cycles in which logic and RAMs work; cycles of full use of all
    #: multipliers that do the useful multiply-accumulates.
    busy_cycles: float
    multiply_cycles: float
    kernel: Resources  #: Cells of the kernel.
    words: RamWords  #: RAMs of the kernel that read or write a word in a busy cycle.
    device_luts: int  #: Size of the device, which leaks as a whole.
    memories: Sequence[MemoryActivity] = ()

    def __post_init__(self) -> None:
        check_range("clock_mhz", self.clock_mhz, 0)
        check_range("cycles", self.cycles, 0)
        for name in ("busy_cycles", "multiply_cycles"):
            check_range(name, getattr(self, name), 0, self.cycles)

    @property
    def seconds(self) -> float:
        """Time from start to done."""
        return self.cycles / (self.clock_mhz * 1e6) if self.cycles else 0.0
