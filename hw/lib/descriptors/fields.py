"""The bytes of a descriptor from the values of its fields."""

from collections.abc import Collection, Mapping

from hw.errors import InputError, check_one_of


def pack_fields(
    fields: Mapping[str, tuple[int, int]],
    values: Mapping[str, int],
    *,
    descriptor_bytes: int,
    signed: Collection[str] = (),
) -> bytes:
    """Write a descriptor.

    ``fields``: byte offset and bytes of every field, all little endian. ``values``: by the names of
    ``fields``; the default is 0. ``descriptor_bytes``: from one descriptor to the next. ``signed``: fields in
    two's complement.  Raises `InputError` for an unknown field, or a value that does not fit.

    >>> pack_fields({"rows": (0, 2), "base": (4, 4)}, {"rows": 5}, descriptor_bytes=8).hex()
    '0500000000000000'
    """
    raw = bytearray(descriptor_bytes)
    for name, value in values.items():
        check_one_of("descriptor field", name, fields)
        offset, size = fields[name]
        low, high = (-(1 << 8 * size - 1), 8 * size - 1) if name in signed else (0, 8 * size)
        if not low <= value < 1 << high:
            raise InputError(name, value, f"from {low} to 2^{high} - 1")
        raw[offset : offset + size] = int(value).to_bytes(size, "little", signed=name in signed)
    return bytes(raw)
