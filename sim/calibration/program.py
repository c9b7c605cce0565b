"""Programs and results of a traffic generator (`hw.lib.traffic`), as Python values."""

from dataclasses import dataclass
from typing import Any

from hw.errors import InputError, check_range
from hw.lib.traffic import MAX_OUTSTANDING, PROGRAM, RESULT

#: 64-bit words of a program and of a result on the bench's register bus.
PROGRAM_WORDS = -(-PROGRAM.size // 64)
RESULT_WORDS = -(-RESULT.size // 64)


@dataclass(frozen=True, kw_only=True)
class TrafficProgram:
    """A run of one direction of one port; see `hw.lib.traffic.PROGRAM`."""

    base: int = 0  #: Address of the window.
    window_bytes: int = 2**28  #: Bytes of the window, a power of two; offsets wrap in it.
    #: Bytes from burst to burst; random addresses are multiples of it (a power of two).
    stride_bytes: int
    random: bool = False  #: Whether addresses are random.
    #: Of a burst; bursts.
    beats: int
    count: int
    outstanding: int = MAX_OUTSTANDING  #: Most outstanding bursts.
    ids: int = 1  #: Identifiers used in rotation, a power of two.
    interval_cycles: int = 0  #: Least kernel cycles from address to address.
    pace_cycles: int = 0  #: Writes only: least kernel cycles from data beat to data beat.
    follow: bool = False  #: Writes only: the data do not overtake the port's reads.

    def __post_init__(self) -> None:
        for name in ("window_bytes", "ids"):
            value = getattr(self, name)
            if value < 1 or value & (value - 1):
                raise InputError(name, value, "a power of two")
        if self.random and self.stride_bytes & (self.stride_bytes - 1):
            raise InputError("stride_bytes", self.stride_bytes, "a power of two when addresses are random")
        check_range("beats", self.beats, 1, 256)
        check_range("outstanding", self.outstanding, 1, MAX_OUTSTANDING)

    def words(self) -> list[int]:
        """Return the program in the format of the bench's registers."""
        align = self.stride_bytes - 1 if self.random else 0
        bits = PROGRAM.const(
            {
                "base": self.base,
                "mask": (self.window_bytes - 1) & ~align,
                "stride": self.stride_bytes,
                "random": int(self.random),
                "beats": self.beats,
                "count": self.count,
                "outstanding": self.outstanding,
                "id_mask": self.ids - 1,
                "interval": self.interval_cycles,
                "pace": self.pace_cycles,
                "follow": int(self.follow),
            }
        ).as_bits()
        return [bits >> 64 * word & (1 << 64) - 1 for word in range(PROGRAM_WORDS)]


def result_of(words: list[int]) -> Any:
    """Return the result of a `TrafficProgram` from the bench's registers: an `hw.lib.traffic.RESULT`."""
    bits = sum(word << 64 * index for index, word in enumerate(words))
    return RESULT.from_bits(bits & (1 << RESULT.size) - 1)
