"""Dot products of one or two vectors of int8 with a shared one, a multiplier for each of its elements."""

from collections.abc import Sequence

from amaranth.hdl import Module, Value

from hw.errors import InputError
from hw.lib.arithmetic.adder_tree import adder_tree, partial_sums, registers, tree_levels
from hw.lib.arithmetic.packed import FACTOR_BITS, WORD_BITS, pack, split


def factor_bits(vectors: int) -> int:
    """Return the bits of a factor that holds an element of each of ``vectors`` vectors."""
    if vectors not in (1, 2):
        raise InputError("vectors", vectors, "1 or 2")
    return FACTOR_BITS if vectors == 2 else 8


def factor(elements: Sequence[Value]) -> Value:
    """Return the factor, signed, of one element, or of two that share a multiplier."""
    return pack(*elements) if factor_bits(len(elements)) == FACTOR_BITS else elements[0]


def dot_latency(count: int) -> int:
    """Return the cycles from vectors of ``count`` elements to their dot products: the product, then the
    sum.
    """
    return 1 + tree_levels(count)


def dot_products(
    m: Module, factors: Sequence[Value], shared: Sequence[Value], *, vectors: int, bits: int
) -> list[Value]:
    """Multiply ``vectors`` vectors by a shared one, element by element, and add up the products of each.

    ``factors``: the `factor` of the vectors' elements, all int8, for each element. ``shared``: the
    shared vector, as many int8. ``vectors``: 1 or 2. ``bits``: of a dot product; sums are modulo ``2**bits``.

    Returns the dot products, each signed, ``bits`` wide, of the inputs of `dot_latency` cycles ago.

    Behaviour
    ---------
    A new pair of inputs every cycle.  Two products share a multiplier (see `hw.lib.arithmetic.packed`), and
    the first level of the adder tree adds packed words, of which `RADIX` fit.
    """
    wide = WORD_BITS if factor_bits(vectors) == FACTOR_BITS else bits
    products = registers("product", len(factors), wide)
    m.d.sync += [
        register.eq(one * other) for register, one, other in zip(products, factors, shared, strict=True)
    ]
    if vectors == 1:
        return [adder_tree(m, "sum", products, bits)]
    words = products
    if len(products) > 1:  # the tree's first level
        sums = partial_sums(products)
        words = registers("word", len(sums), WORD_BITS)
        m.d.sync += [register.eq(value) for register, value in zip(words, sums, strict=True)]
    high, low = zip(*(split(word) for word in words), strict=True)
    return [adder_tree(m, f"sum_{n}", fields, bits, first_level=0) for n, fields in enumerate((high, low))]
