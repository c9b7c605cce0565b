"""Text of a file or a path on its way to a terminal."""


def plain(text: str) -> str:
    r"""Escape characters that do not print (``\x1b``, ``\n``): a name from a file must not steer the terminal
    or imitate a line of Loomwork's.
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
