"""Functions that Numba compiles once for each state of the sources, and keeps between runs.

Numba itself looks at the file of a function alone: it would go on with the old form when a function or a
constant that another file gives has changed, and fail when such a file has moved.  So each state of the
sources has a cache of its own, beside them, which takes the place of those before it.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numba

_SOURCES = Path(__file__).parent


def _cache(sources: Path) -> Path:
    """Give the folder for what is compiled of the Python files in ``sources``, and remove earlier ones."""
    digest = hashlib.sha256()
    for path in sorted(sources.rglob("*.py")):
        digest.update(f"{path.relative_to(sources)}\0".encode())
        digest.update(path.read_bytes())
    parent = sources / "__pycache__"
    folder = parent / f"numba-{digest.hexdigest()[:16]}"
    for earlier in parent.glob("numba-*"):
        if earlier != folder:
            shutil.rmtree(earlier, ignore_errors=True)
    return folder


if not numba.config.CACHE_DIR:  # unless the user has named one by NUMBA_CACHE_DIR
    numba.config.CACHE_DIR = str(_cache(_SOURCES))

#: Decorator of the functions to be compiled.
compiled: Any = numba.njit(cache=True)
