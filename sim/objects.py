"""Object files that no design changes, compiled once: Verilator's run-time library and the memory models.

They are two thirds of the compile time of a middling design (17 of 27 s for a 4,096-MAC array).
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sim.cache import key_of

_LIST = re.compile(
    r"^(VM_GLOBAL_FAST|VM_GLOBAL_SLOW|VM_USER_CLASSES) (?:\+=|=) \\\n((?:\s+\S+ \\\n)*)", re.MULTILINE
)
# Of the switches of a design only these reach the library; tracing adds files and changes none.
_SWITCH = re.compile(r"^VM_(?:TIMING|COVERAGE|SC) = \d+$", re.MULTILINE)


class ObjectStore:
    """Object files by what they are compiled from.

    Parameters
    ----------
    directory
        Where they are kept.
    fingerprint
        Versions and flags of everything that makes them.
    """

    def __init__(self, directory: Path, *, fingerprint: Sequence[str]) -> None:
        self._directory = directory
        self._fingerprint = tuple(fingerprint)

    def provide(self, objects: Path, sources: Path, make: Callable[[list[str]], None]) -> None:
        """Put the shared object files into ``objects``, where ``make`` takes them for already compiled.

        Parameters
        ----------
        objects
            The folder Verilator has just written.
        sources
            The folder of the C++ models and their headers.
        make
            Makes the targets it is given in ``objects``: those that nobody has compiled before.  Of several
            builds at a time, one compiles and the others wait.
        """
        shared = dict(self._shared(objects, sources))
        self._directory.mkdir(exist_ok=True)
        with open(self._directory / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            missing = [name for name, stored in shared.items() if not stored.exists()]
            if missing:
                make([f"{name}.o" for name in missing])
            for name in missing:
                handle, temporary = tempfile.mkstemp(dir=self._directory)
                os.close(handle)
                shutil.copyfile(objects / f"{name}.o", temporary)
                os.replace(temporary, shared[name])
        for name, stored in shared.items():
            if name not in missing:
                shutil.copyfile(stored, objects / f"{name}.o")

    def _shared(self, objects: Path, sources: Path) -> Iterator[tuple[str, Path]]:
        makefiles = (objects / "Vtop_classes.mk").read_text() + (objects / "Vtop.mk").read_text()
        switches = sorted(_SWITCH.findall(makefiles))
        headers = [path.read_text() for path in sorted(sources.glob("*.h"))]
        for group, names in _LIST.findall(makefiles):
            for name in names.replace("\\", "").split():
                text = ""
                if group == "VM_USER_CLASSES":
                    source = sources / f"{name}.cpp"
                    text = source.read_text() if source.exists() else '#include "Vtop.h"'
                    if '#include "Vtop' in text:
                        continue  # sees the design
                key = key_of([name, text, *(headers if text else ()), *switches, *self._fingerprint])
                yield name, self._directory / f"{key}.o"
