"""Three products of a shared int8 and weights of 4 bits in one multiplier of 27 x 18 bits.

``(w2 * 2^22 + w1 * 2^11 + w0) * x`` has the three products in fields of 11 bits: with weights of -7 ... 7
each is at most 896, so that a field holds one product and its sign, but no sum of two.  A negative field has
borrowed one from the field above (`hw.lib.arithmetic.packed`).
"""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Value

from hw.lib.arithmetic.adder_tree import adder_tree, registers, tree_levels

#: Bits of a field, of a product, and of a packed factor.
_FIELD_BITS, _PRODUCT_BITS, _FACTOR_BITS = 11, 34, 27


def triple_factor(weights: Sequence[Value]) -> Value:
    """Return the factor, signed, of one to three weights of 4 bits, the first lowest."""
    fields, borrow = [], None
    for weight in weights:
        field = weight if borrow is None else (weight - borrow).as_signed()
        borrow = field[-1]
        fields.append(Cat(field, borrow.replicate(_FIELD_BITS - len(field))))
    return Cat(*fields)[:_FACTOR_BITS].as_signed()


def triple_latency(count: int) -> int:
    """Return the cycles from vectors of ``count`` elements to their dot products: product, fields, sum."""
    return 2 + tree_levels(count)


def triple_products(
    m: Module, factors: Sequence[Value], shared: Sequence[Value], *, vectors: int, bits: int
) -> list[Value]:
    """Multiply ``vectors`` vectors of 4 bits by a shared one of int8, and add up the products of each.

    As `hw.lib.arithmetic.dot_product.dot_products`, with the factors of `triple_factor` and 1 to 3 vectors.
    """
    products = registers("product", len(factors), _PRODUCT_BITS)
    m.d.sync += [
        register.eq(one * other) for register, one, other in zip(products, factors, shared, strict=True)
    ]
    sums = []
    for n in range(vectors):
        fields = registers(f"field_{n}", len(products), _FIELD_BITS)
        first = n * _FIELD_BITS
        for field, product in zip(fields, products, strict=True):
            value = product[first : first + _FIELD_BITS]
            m.d.sync += field.eq(value + product[first - 1] if n else value)
        signed_fields = [field.as_signed() for field in fields]
        sums.append(adder_tree(m, f"sum_{n}", signed_fields, bits))
    return sums
