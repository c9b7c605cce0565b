"""Products in GF(2^128) as in GCM (SP 800-38D, section 6.3), in parts for a pipeline.

The first bit of a block, the highest of byte 0, is the coefficient of x^0. A **mirrored** word is the block
in reverse byte order: coefficient k is bit 127 - k. The carry-less product of two mirrored words is the
mirrored product, coefficient k in bit 254 - k, without reversing bits within bytes.

The product uses Karatsuba's method three times: 27 products of 16 bits. All later steps are linear: sums are
taken over the 27 parts, and combined and reduced once.
"""

import functools
import operator
from collections.abc import Iterable, Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from hw.oram.core.crypto.aes_lane import BLOCK_BITS

#: Karatsuba's operands: their bits, their number, and the bits of a product of two.
PART_BITS = 16
PARTS = 27
PRODUCT_BITS = 2 * PART_BITS - 1


def exclusive_or(values: Iterable[Value]) -> Value:
    """Add in a field of characteristic two."""
    return functools.reduce(operator.xor, values)


def mirror(block: Value) -> Value:
    """Reverse the bytes of a block."""
    return Cat(block[at : at + 8] for at in reversed(range(0, BLOCK_BITS, 8)))


def parts(word: Value) -> list[Value]:
    """Return the operands of 16 bits: low half, sum and high half, recursively."""

    def halves(indices: list[list[int]]) -> list[list[int]]:
        if len(indices) == 1:
            return indices
        low, high = indices[: len(indices) // 2], indices[len(indices) // 2 :]
        both = [a + b for a, b in zip(low, high, strict=True)]
        return halves(low) + halves(both) + halves(high)

    words = [word[at : at + PART_BITS] for at in range(0, BLOCK_BITS, PART_BITS)]
    sums = halves([[n] for n in range(len(words))])
    return [exclusive_or(words[n] for n in indices) for indices in sums]


# Shifts by constants use `shift_left` and `shift_right`, which are slices. For `<<` Amaranth looks for cycles
# between all pairs of bits; that took longer than the rest of the map's generation.


def part_product(a: Value, b: Value) -> Value:
    """Multiply two parts: three rows are one LUT of six inputs, and their six sums another."""
    rows = [Mux(b[n], a, 0).shift_left(n) for n in range(PART_BITS)]
    groups = [exclusive_or(rows[at : at + 3]) for at in range(0, PART_BITS, 3)]
    return exclusive_or(groups)[:PRODUCT_BITS]


def combine(m: Module, products: Sequence[Value]) -> Value:
    """Combine the products of parts, or sums of such products: 255 bits, three levels of logic."""
    width = PRODUCT_BITS
    while len(products) > 1:
        shift = (width + 1) // 2
        level = []
        for n in range(0, len(products), 3):
            low, both, high = products[n : n + 3]
            middle = low ^ both ^ high
            level.append(Signal(width + 2 * shift, name=f"combined_{width}_{n // 3}"))
            m.d.comb += level[-1].eq(low ^ middle.shift_left(shift) ^ high.shift_left(2 * shift))
        products, width = level, width + 2 * shift
    return products[0]


def reduce(product: Value) -> Value:
    """Reduce a mirrored product modulo x^128 + x^7 + x^2 + x + 1: 128 bits."""
    low = product[BLOCK_BITS - 1 :]
    high = product[: BLOCK_BITS - 1].shift_left(1)
    # Part of x^7, x^2 and x times the high half exceeds x^127 again.
    beyond = exclusive_or(high[:n].shift_left(BLOCK_BITS - n) for n in (1, 2, 7))
    total = high ^ beyond
    return low ^ total ^ total.shift_right(1) ^ total.shift_right(2) ^ total.shift_right(7)
