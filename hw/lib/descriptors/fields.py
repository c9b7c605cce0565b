"""The bytes of a descriptor from the values of its fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hw.errors import InputError


def pack_fields(
    fields: Mapping[str, tuple[int, int]],
    values: Mapping[str, int],
    *,
    descriptor_bytes: int,
    signed: Collection[str] = (),
) -> bytes:
    """Write a descriptor.

    ``fields``: byte offset and bytes of every field, all little endian. ``values``: by the names of
    ``fields``; what is not given is 0. ``descriptor_bytes``: from one descriptor to the next. ``signed``:
    fields in two's complement.

    Returns
    -------
    bytes
        ``descriptor_bytes`` of them.

    Raises
    ------
    InputError
        For an unknown field, or a value that does not fit.
    """
    raw = bytearray(descriptor_bytes)
    for name, value in values.items():
        if name not in fields:
            raise InputError("descriptor field", name, "one of " + ", ".join(fields))
        offset, size = fields[name]
        low, high = (-(1 << 8 * size - 1), 8 * size - 1) if name in signed else (0, 8 * size)
        if not low <= value < 1 << high:
            raise InputError(name, value, f"from {low} to 2^{high} - 1")
        raw[offset : offset + size] = int(value).to_bytes(size, "little", signed=name in signed)
    return bytes(raw)
