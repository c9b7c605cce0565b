"""Functions that Numba compiles once for each state of the sources, and caches between runs.

Numba's own cache checks only the file of the function.  It would use stale code after a change to an imported
function or constant, and fail when an imported file has moved.  So each state of the sources has a cache of
its own, in the user's cache folder, because the sources may be read-only.  The last few states are kept.

A compiled function releases the GIL, so that another thread can watch it and ask it to stop.
"""

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

#: States of the sources whose compiled functions are kept, for several installations used in turn.
_KEPT = 8


def _cache(sources: Path, parent: Path) -> Path:
    """Return the cache folder in ``parent`` for the Python files in ``sources``; remove the least recently
    used folders.  Where ``parent`` cannot be written, the folder is a temporary one.
    """
    digest = hashlib.sha256()
    for path, text in sorted(_compiled_from(sources).items()):
        digest.update(f"{path}\0{text}\0".encode())
    folder = parent / digest.hexdigest()[:16]
    with suppress(OSError):  # not writable, or another process removes the same folders
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        by_age = sorted(parent.iterdir(), key=lambda each: -each.stat().st_mtime_ns)
        for earlier in by_age[_KEPT:]:
            shutil.rmtree(earlier, ignore_errors=True)
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp())


def _compiled_from(sources: Path) -> dict[str, str]:
    """Return the texts of the files with compiled functions, and of the files they import, by path."""
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
    """Compile a function with Numba; a decorator."""
    # Without the wrapper for calls from C, compiling takes an eighth less time.
    made: Any = numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function)
    called = made.get_call_template

    def get_call_template(args: Iterable[Any], kws: Mapping[str, Any]) -> Any:
        """Compile once for a type: not a second time for an argument whose value is a known constant."""
        return called([unliteral(arg) for arg in args], kws)

    made.get_call_template = get_call_template
    return made


class CompileListener(event.Listener):
    """Receives an event for each function that is compiled because the cache misses."""

    def __init__(self, notify: Callable[[bool], None]) -> None:
        self.seconds = 0.0  #: Seconds spent compiling so far.
        self._notify, self._open, self._began = notify, 0, 0.0

    def on_start(self, event: Any) -> None:
        """Count nesting: compiling a function also compiles the functions it calls."""
        if not self._open:
            self._began = time.monotonic()
        self._open += 1
        self._notify(True)

    def on_end(self, event: Any) -> None:
        """Add the time of the outermost compilation."""
        self._open -= 1
        if not self._open:
            self.seconds += time.monotonic() - self._began
            self._notify(False)


@contextmanager
def reported_compiling(notify: Callable[[bool], None]) -> Iterator[CompileListener]:
    """Call ``notify`` with True when the compilation of an uncached function starts, with False when it
    ends.
    """
    with event.install_listener("numba:compile", listener := CompileListener(notify)):
        yield listener
