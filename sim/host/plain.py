"""Text of a file or a path on its way to a terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    r"""Show what does not print as an escape (``\x1b``, ``\n``): no name in a file is to steer the terminal,
    or to pass for a line of Loomwork's own.
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
