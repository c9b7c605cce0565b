"""Two products of one shared factor in one multiplier: the 27 x 18 bit multiplier of a DSP48E2.

``(high * 2^18 + low) * shared`` is ``high * shared * 2^18 + low * shared``: a word of two fields.  As long as
the low field lies in -2^17 ... 2^17 - 1, words may be added like numbers, and both fields come out exact.  A
negative low field has borrowed one from the high field, and its sign bit says so.  Products of two int8 are
-16256 ... 16384, so sums of `INT8_SUMS` of them fit; the product of an int8 and a probability of 8 bits
(0 ... 256) does.
"""

from amaranth.hdl import Cat, Value

#: Bits of a field; the high one has as many above it in the words that are kept.
FIELD_BITS = 18
#: Bits of a packed factor: the wide port of the multiplier.
FACTOR_BITS = 27
#: Bits of a word of two fields.
WORD_BITS = 2 * FIELD_BITS
#: Words of int8 products that may be added before they are split: an eighth 2^14 would reach 2^17.
INT8_SUMS = 7


def pack(high: Value, low: Value) -> Value:
    """Return ``high * 2^18 + low`` of two int8, signed, 27 bits."""
    sign = low[-1].replicate(FIELD_BITS - len(low))
    # The low half is the number itself, so only the high half needs an adder.
    return Cat(low, sign, (high - low[-1])[: FACTOR_BITS - FIELD_BITS]).as_signed()


def split(word: Value) -> tuple[Value, Value]:
    """Return the high and the low field of a word (a product, or a sum of some), each signed, 18 bits."""
    high = (word[FIELD_BITS:WORD_BITS] + word[FIELD_BITS - 1])[: WORD_BITS - FIELD_BITS]
    return high.as_signed(), word[:FIELD_BITS].as_signed()
