"""Functions that Numba compiles once for each state of the sources, and keeps between runs.

Numba itself looks at the file of a function alone: it would go on with the old form when a function or a
constant that another file gives has changed, and fail when such a file has moved.  So each state of the
sources has a cache of its own in the user's folder for caches, which may be written to where the sources may
not; the last few states are kept.

A compiled function lets other threads run meanwhile, so that someone can watch it and ask it to stop.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.types.misc import unliteral

_SOURCES = Path(__file__).parent

#: States of the sources whose compiled functions are kept: several installations may take turns.
_KEPT = 8


def _cache(sources: Path, parent: Path) -> Path:
    """Return the folder in ``parent`` for what is compiled of the Python files in ``sources``, and remove
    those used longest ago; a temporary one where ``parent`` cannot be written.
    """
    digest = hashlib.sha256()
    for path, text in sorted(_compiled_from(sources).items()):
        digest.update(f"{path}\0{text}\0".encode())
    folder = parent / digest.hexdigest()[:16]
    with suppress(OSError):  # it cannot be written, or someone else removes the same folders
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        by_age = sorted(parent.iterdir(), key=lambda each: -each.stat().st_mtime_ns)
        for earlier in by_age[_KEPT:]:
            shutil.rmtree(earlier, ignore_errors=True)
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp())


def _compiled_from(sources: Path) -> dict[str, str]:
    """Return the texts of the files with functions to be compiled and of those they import, by path."""
    texts = {path: path.read_text(encoding="utf-8") for path in sources.rglob("*.py")}
    found: dict[str, str] = {}
    waiting = [path for path, text in texts.items() if "import compiled\n" in text]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(sources).as_posix()
        if path in texts and name not in found:
            found[name] = texts[path]
            imports = re.findall(
                rf"^from hw\.{sources.name}\.([a-z_.0-9]+) import", texts[path], re.MULTILINE
            )
            waiting += [sources / (module.replace(".", "/") + ".py") for module in imports]
    return found


if not numba.config.CACHE_DIR:  # unless the user has named one by NUMBA_CACHE_DIR
    _user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    numba.config.CACHE_DIR = str(_cache(_SOURCES, _user / "loomwork" / "compiled"))


def compiled(function: Callable[..., Any]) -> Any:
    """Make a function one that is compiled: a decorator."""
    # Without what C would call it by, that is an eighth shorter.
    made: Any = numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function)
    called = made.get_call_template

    def get_call_template(args: Iterable[Any], kws: Mapping[str, Any]) -> Any:
        """Not once for a variable's first value, as a constant, and once more for what it may be later."""
        return called([unliteral(arg) for arg in args], kws)

    made.get_call_template = get_call_template
    return made


class CompileListener(event.Listener):
    """Hears of every function that is compiled because the cache has it not."""

    def __init__(self, tell: Callable[[bool], None]) -> None:
        self.seconds = 0.0  #: What compiling took so far.
        self._tell, self._open, self._began = tell, 0, 0.0

    def on_start(self, event: Any) -> None:
        """Functions that one calls are compiled while it is."""
        if not self._open:
            self._began = time.monotonic()
        self._open += 1
        self._tell(True)

    def on_end(self, event: Any) -> None:
        """The outermost counts."""
        self._open -= 1
        if not self._open:
            self.seconds += time.monotonic() - self._began
            self._tell(False)


@contextmanager
def reported_compiling(tell: Callable[[bool], None]) -> Iterator[CompileListener]:
    """Call ``tell`` with True whenever a function is compiled because the cache has it not, with False after
    it.
    """
    with event.install_listener("numba:compile", listener := CompileListener(tell)):
        yield listener
