"""Seeded bugs: a class compiled anew from its source with one piece of text replaced.

A test of a test: the block with the bug must make the property set, or the model, fail.  Because the bug is
made in the real source, a property set cannot pass by looking at a toy instead of the block.
"""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any


def mutant(original: Any, old: str, new: str) -> Any:
    """Return the class (or function) ``original`` with ``old`` replaced by ``new`` in its source.

    Raises
    ------
    ValueError
        Unless ``old`` occurs exactly once in that source: a bug that is not there shows nothing.
    """
    own = inspect.getsource(original)
    if own.count(old) != 1:
        raise ValueError(f"{old!r} occurs {own.count(old)} times in {original.__name__}")
    module = sys.modules[original.__module__]
    text = inspect.getsource(module).replace(own, own.replace(old, new))
    changed = types.ModuleType(module.__name__)
    changed.__file__ = module.__file__
    exec(compile(text, str(module.__file__), "exec"), changed.__dict__)
    return getattr(changed, original.__name__)
