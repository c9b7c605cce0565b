"""Object files that all simulators share, compiled once: Verilator's library and header, memory models.

They are most of the compile time of a middling design: 24 of 34 s for 4,096 multiply-accumulators.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sim.host.digest import key_of

_LIST = re.compile(
    r"^(VM_GLOBAL_FAST|VM_GLOBAL_SLOW|VM_USER_CLASSES) (?:\+=|=) \\\n((?:\s+\S+ \\\n)*)", re.MULTILINE
)
# Of the switches of a design only these reach the library; tracing adds files and changes none.
_SWITCH = re.compile(r"^VM_(?:TIMING|COVERAGE|SC) = \d+$", re.MULTILINE)
# What every file of a model includes before anything of the design.
_HEADER = "library.h"
_HEADER_TEXT = '#include "verilated.h"\n#include "verilated_dpi.h"\n#include "verilated_timing.h"\n'
# The two sets of flags it is compiled for, as Verilator's makefile calls them.
_KINDS = ("fast", "slow")


def provide(
    store: Path, fingerprint: Sequence[str], objects: Path, sources: Path, make: Callable[[list[str]], None]
) -> list[str]:
    """Put the shared object files into ``objects``, where ``make`` takes them for already compiled.

    They are kept in the directory ``store``, by what they are compiled from and the ``fingerprint`` of tools
    and flags.  ``objects`` is the folder Verilator has just written, ``sources`` that of the C++ models;
    ``make`` makes the targets that nobody has compiled before.  Of several builds at a time, one compiles and
    the others wait. Gives the variables with which ``make`` uses the shared header too, compiled ahead: it
    stands in for Verilator's own, which includes the design and so would be compiled for each, twice.
    """
    makefiles = (objects / "Vtop_classes.mk").read_text() + (objects / "Vtop.mk").read_text()
    shared = dict(_shared(store, fingerprint, makefiles, sources))
    header, compiled = None, []
    # Designs of one file have no header of their own. A compiled header serves one set of macros only, and
    # it is 100 MB large: not worth it for tracing.
    if "VM_PARALLEL_BUILDS = 1" in makefiles and "VM_TRACE = 1" not in makefiles:
        header = store / (key_of([_HEADER_TEXT, *fingerprint]) + ".h")
        compiled = [f"{_HEADER}.{kind}.gch" for kind in _KINDS]
    store.mkdir(exist_ok=True)
    with open(store / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if header is not None:
            shared |= {name: header.with_name(header.name + name.removeprefix(_HEADER)) for name in compiled}
            for copy in (objects / _HEADER, header, *(Path(f"{header}.{kind}") for kind in _KINDS)):
                if not copy.exists():
                    copy.write_text(_HEADER_TEXT)
        missing = [name for name, stored in shared.items() if not stored.exists()]
        if missing:
            make(missing)
        for name in missing:
            handle, temporary = tempfile.mkstemp(dir=store)
            os.close(handle)
            shutil.copyfile(objects / name, temporary)
            os.replace(temporary, shared[name])
    for name, stored in shared.items():
        if name not in (*missing, *compiled):
            shutil.copyfile(stored, objects / name)
    if header is None:
        return []
    included = [f"VK_PCH_I_{kind.upper()}=-include {header}.{kind}" for kind in _KINDS]
    return [f"VK_PCH_H={header}", *included]


def _shared(
    store: Path, fingerprint: Sequence[str], makefiles: str, sources: Path
) -> Iterator[tuple[str, Path]]:
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
            key = key_of([name, text, *(headers if text else ()), *switches, *fingerprint])
            yield f"{name}.o", store / f"{key}.o"
