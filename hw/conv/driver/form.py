"""The lanes of a pixel's channels in its words, and the bytes of a pixel at each memory port."""

from dataclasses import dataclass

from hw.conv.config import ConvConfig
from hw.errors import InputError


@dataclass(frozen=True, kw_only=True)
class MapForm:
    """The layout of a map's channels in words."""

    channels: int
    parts: int = 1  #: 1, or 2: halves of the channels, each aligned to a word.
    groups: int = 1  #: Groups of channels with offsets of their own, each aligned to a slice of L / G lanes.

    def __post_init__(self) -> None:
        if self.parts not in (1, 2) or self.channels % self.parts:
            raise InputError("parts", self.parts, f"1 or 2, and a divisor of {self.channels} channels")
        if self.groups > 1 and self.parts > 1:
            raise InputError("parts", self.parts, "1 for a map with groups of offsets")
        if self.channels % self.groups:
            raise InputError("groups", self.groups, f"a divisor of {self.channels} channels")

    def lanes(self, config: ConvConfig) -> list[int]:
        """Return the lane of each channel, counted over the words of a pixel."""
        size = self.channels // (self.parts * self.groups)
        pitch = size
        if self.parts > 1:
            pitch = _whole(size, config.lanes)
        elif self.groups > 1:
            pitch = _whole(size, config.lanes // config.generators)
        return [c // size * pitch + c % size for c in range(self.channels)]

    def part_words(self, config: ConvConfig) -> int:
        """Count the words of a part of a pixel."""
        return _whole(self._part_lanes(config), config.lanes) // config.lanes

    def words(self, config: ConvConfig) -> int:
        """Count the words of a pixel."""
        return self.parts * self.part_words(config)

    def units(self, config: ConvConfig) -> list[int]:
        """Count the bytes of a part of a pixel at each port.

        Port p has lanes p L / P ... (p + 1) L / P - 1 of every word, up to the last channel.
        """
        share = config.lanes // config.ports
        whole, rest = divmod(self._part_lanes(config), config.lanes)
        return [whole * share + min(max(rest - p * share, 0), share) for p in range(config.ports)]

    def _part_lanes(self, config: ConvConfig) -> int:
        """Count the lanes of a part, up to its last channel."""
        return self.channels // 2 if self.parts > 1 else self.lanes(config)[-1] + 1


def _whole(size: int, step: int) -> int:
    return -(-size // step) * step
