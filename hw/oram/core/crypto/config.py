"""Shape of sealed pages, and what passes between the parts that seal and open them."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.lib import data

from hw.errors import InputError
from hw.oram.config import BLOCK_BYTES
from hw.oram.core.crypto.aes_lane import BLOCK_BITS

#: Deepest memory of these parts that goes into LUTs.
LUT_DEPTH = 64


@dataclass(frozen=True, kw_only=True)
class PageShape:
    """A page: 16 bytes with its tag, then its ciphertext; a record of commands is such a page, too."""

    page_bytes: int  #: P, a multiple of 16 L from 32 to 32 KiB.
    lanes: int  #: L, AES lanes: 1, 2, 4 or 8. A beat has 16 L bytes.
    mac_bits: int = 128  #: Bits of the tag that count, its first: 64, 96 or 128. The others are zero.

    def __post_init__(self) -> None:
        size = self.page_bytes
        if self.lanes not in (1, 2, 4, 8):
            raise InputError("lanes", self.lanes, "1, 2, 4 or 8")
        unit = BLOCK_BYTES * self.lanes
        if not (2 * BLOCK_BYTES <= size <= 1 << 15 and size % unit == 0):
            raise InputError("page_bytes", size, f"a multiple of {unit} from 32 to 32768")
        if self.mac_bits not in (64, 96, 128):
            raise InputError("mac_bits", self.mac_bits, "64, 96 or 128")

    @property
    def slots(self) -> int:
        """Blocks of a page, that of the tag included: as many as its keystream has."""
        return self.page_bytes // BLOCK_BYTES

    @property
    def beats(self) -> int:
        """Beats of a page, and cycles it takes."""
        return self.slots // self.lanes

    @property
    def beat_bits(self) -> int:
        """Bits of a beat."""
        return BLOCK_BITS * self.lanes


def power_layout(shape: PageShape) -> data.StructLayout:
    """Return one write of a power of the hash key: ``en``, the slot it belongs to, the power."""
    return data.StructLayout({"en": 1, "slot": range(shape.slots), "value": BLOCK_BITS})


def beat_layout(shape: PageShape) -> data.StructLayout:
    """Return a beat that leaves: its bytes, and whether it is the last of its page."""
    return data.StructLayout({"data": shape.beat_bits, "last": 1})
