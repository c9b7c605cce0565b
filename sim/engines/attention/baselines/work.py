"""Work, machine and cost of a comparison."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Work:
    """Dense attention of equal heads."""

    #: Numbers; every head has keys and values of its own.
    heads: int
    queries: int
    keys: int
    size: int  #: Elements of a query, a key, a value and a result.
    #: Bytes of an element of queries, keys and values, and of a result.
    input_bytes: int = 1
    output_bytes: int = 2

    @property
    def useful_macs(self) -> int:
        """Multiply-accumulates of scores and of weighted values."""
        return 2 * self.heads * self.queries * self.keys * self.size

    @property
    def query_bytes(self) -> int:
        """Bytes of the queries of a head."""
        return self.queries * self.size * self.input_bytes

    @property
    def key_bytes(self) -> int:
        """Bytes of the keys of a head, and as many of its values."""
        return self.keys * self.size * self.input_bytes

    @property
    def result_bytes(self) -> int:
        """Bytes of the results of a head."""
        return self.queries * self.size * self.output_bytes

    @property
    def matrix_bytes(self) -> int:
        """Bytes of a head's scores or probabilities in memory, at the width of inputs."""
        return self.queries * self.keys * self.input_bytes

    @property
    def compulsory_bytes(self) -> int:
        """Bytes of every input once and every result once."""
        return self.heads * (self.query_bytes + 2 * self.key_bytes + self.result_bytes)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The multipliers and the memory of a schedule."""

    macs: int  #: Multiply-accumulates a cycle.
    on_chip_bytes: int  #: Memory for operands and running results.
    bytes_per_cycle: float = math.inf  #: Off-chip bandwidth; infinite to ignore memory.
    #: Rows and columns of a square array; by default the power of two nearest to the square root of ``macs``.
    #: ``macs / side**2`` such arrays, a fraction included, share the work.
    side: int = 0

    def __post_init__(self) -> None:
        if not self.side:
            object.__setattr__(self, "side", 1 << max(0, round(math.log2(self.macs) / 2)))

    def arrays(self, side: int) -> float:
        """Return the number of square arrays of ``side``."""
        return self.macs / side**2

    def memory_cycles(self, moved_bytes: int) -> float:
        """Return the cycles of a number of bytes at full bandwidth."""
        return moved_bytes / self.bytes_per_cycle


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cycles and bytes of a schedule."""

    cycles: float  #: Of the schedule, from its first operation to its last.
    moved_bytes: int  #: Off-chip bytes, read and written.
    microjoules: float | None = None  #: Energy of kernel, device and memory; None of a formula.

    def utilization(self, work: Work, machine: Machine) -> float:
        """Return the share of multiplier slots that hold a multiplication of a score or a weighted value."""
        return work.useful_macs / (self.cycles * machine.macs)


def flash_law_bytes(work: Work, machine: Machine) -> float:
    """Return ``N^2 d^2 / M`` elements in bytes, M elements on chip.

    Dao et al., "FlashAttention", NeurIPS 2022 (arXiv 2205.14135), theorem 2: its traffic is proportional to
    this.  Saha and Ye 2024 (arXiv 2402.07443): no algorithm is below a constant times it for M of at least
    ``d**2``.  **Neither states the constant**, so it is a yardstick for growth and no bound; compulsory bytes
    are the bound.
    """
    elements = machine.on_chip_bytes / work.input_bytes
    return work.heads * work.queries * work.keys * work.size**2 / elements * work.input_bytes
