"""Blocks and round keys of the map's cryptography, as integers for its signals."""

from tests.support.oram.stages import expand_key


def bits(content):
    """Return bytes as a signal's value, byte n in bits 8 n to 8 n + 7."""
    return int.from_bytes(bytes(content), "little")


def content(value, size=16):
    """Return the bytes of a signal's value."""
    return int(value).to_bytes(size, "little")


def round_keys(unit, key, member="round_keys"):
    """Return (signal, value) of a unit's round keys."""
    return [
        (signal, bits(words)) for signal, words in zip(getattr(unit, member), expand_key(key), strict=True)
    ]
