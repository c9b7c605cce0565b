"""Which extra of the package a missing module belongs to: not everybody needs a planner or a demo."""

import importlib.metadata
import re

_NEED = re.compile(r"^([\w.-]+).*;.*extra == [\"'](\w+)[\"']")


def extra_of(module: str) -> str | None:
    """Return the first extra that brings a module, None when none does."""
    wanted = module.split(".")[0].replace("_", "-")
    for need in importlib.metadata.requires("loomwork") or []:
        found = _NEED.match(need)
        if found and found[1] == wanted:
            return found[2]
    return None
