"""Shape of sealed pages, and layouts between the parts that seal and open them."""

from dataclasses import dataclass

from amaranth.lib import data

from hw.errors import InputError
from hw.oram.config import BLOCK_BYTES
from hw.oram.core.crypto.aes_lane import BLOCK_BITS

#: Greatest depth of a memory in LUTs.
LUT_DEPTH = 64


@dataclass(frozen=True, kw_only=True)
class PageShape:
    """A page: 16 bytes with its tag, then its ciphertext; sealed commands and responses are alike."""

    page_bytes: int  #: P, a multiple of 16 L from 32 to 32 KiB.
    lanes: int  #: L, AES lanes: 1, 2, 4 or 8. A beat has 16 L bytes.
    mac_bits: int = 128  #: Bits of the tag in use, its first: 64, 96 or 128. The others are zero.

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
        """Blocks of a page, including its tag, and of its keystream."""
        return self.page_bytes // BLOCK_BYTES

    @property
    def beats(self) -> int:
        """Beats of a page, one a cycle."""
        return self.slots // self.lanes

    @property
    def beat_bits(self) -> int:
        """Bits of a beat."""
        return BLOCK_BITS * self.lanes


def power_layout(shape: PageShape) -> data.StructLayout:
    """Return a write of a power of the hash key: ``en``, its slot, the power."""
    return data.StructLayout({"en": 1, "slot": range(shape.slots), "value": BLOCK_BITS})


def beat_layout(shape: PageShape) -> data.StructLayout:
    """Return an output beat: its bytes, and the last of its page."""
    return data.StructLayout({"data": shape.beat_bits, "last": 1})
