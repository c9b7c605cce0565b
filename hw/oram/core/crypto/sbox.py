"""The AES S-box as a table of 256 bytes (FIPS 197, section 5.1.1)."""

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import memory


def _sbox() -> list[int]:
    """Compute the table: the inverse in GF(2^8), then an affine map."""
    powers = [1]  # of 3, which generates the field's 255 units
    for _ in range(254):
        doubled = powers[-1] << 1
        powers.append(powers[-1] ^ doubled ^ (0x11B if doubled > 0xFF else 0))
    logarithms = {power: exponent for exponent, power in enumerate(powers)}
    table = []
    for byte in range(256):
        inverse = powers[-logarithms[byte] % 255] if byte else 0
        twice = inverse << 8 | inverse
        rotated = (twice >> (8 - n) & 0xFF for n in range(5))
        mapped = 0x63
        for term in rotated:
            mapped ^= term
        table.append(mapped)
    return table


def substitute(m: Module, name: str, word: Value) -> Value:
    """Return ``word`` with each byte replaced by its entry in the S-box, in the same cycle.

    ``name``: of the table's submodule. ``word``: whole bytes.

    Why a memory: Yosys and Vivado map it to 32 LUT6 a byte and the slice's wide multiplexers, one level of
    logic. A ``Switch`` and a shifted constant map to the same cells (measured), but a simulator would compare
    or shift in those forms. The attribute keeps Yosys from inferring a RAM with many ports.
    """
    table = memory.Memory(shape=8, depth=256, init=_sbox(), attrs={"logic_block": 1})
    m.submodules[name] = table
    found = []
    for at in range(0, len(word), 8):
        port = table.read_port(domain="comb")
        m.d.comb += port.addr.eq(word[at : at + 8])
        found.append(port.data)
    return Cat(found)
