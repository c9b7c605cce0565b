"""The ``#:`` comments of members and fields, read from the source of the class that declares them."""

import inspect
import re
from typing import Any

_NAME = re.compile(r'(?:\s*|.*[({] ?)"(\w+)":|\s*members\["(\w+)"\] =')
#: A comment on several names begins with them.
_NAMES = re.compile(r"((?:``\w+``, )+``\w+``): ?(.*)", re.DOTALL)


def comments_of(owner: type[Any]) -> dict[str, str]:
    """Return the comment of each member or field that the constructor of the class ``owner`` declares.

    A comment stands above a declaration or on its line. One that begins with names, as in "``a``, ``b``:
    sizes", is that of each of them.
    """
    found: dict[str, str] = {}
    lines: list[str] = []
    for line in inspect.getsource(owner.__init__).splitlines():
        code, _, text = line.partition("#:")
        lines += [text.strip()] if text else []
        named = _NAME.match(code)
        if named is None:
            lines = [] if code.strip() else lines
            continue
        whole, lines = " ".join(lines), []
        several = _NAMES.fullmatch(whole)
        if several:
            found |= dict.fromkeys(re.findall(r"\w+", several[1]), several[2])
        elif whole:
            found[named[1] or named[2]] = whole
    return {name: text[:1].upper() + text[1:] for name, text in found.items()}
