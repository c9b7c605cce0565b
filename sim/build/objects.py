"""Object files that all simulators share, compiled once: Verilator's library and header, memory models.

They are most of the compile time of a middling design: 24 of 34 s for 4,096 multiply-accumulators.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from sim.build.cache import BuildCache
from sim.host.digest import key_of

_LIST = re.compile(r"^(VM_\w+) (?:\+=|=) \\\n((?:\s+\S+ \\\n)*)", re.MULTILINE)
# Lists of files that see no design, or need not.
_SHARED = ("VM_GLOBAL_FAST", "VM_GLOBAL_SLOW", "VM_USER_CLASSES")
# The file that includes all of a small design.
_ALL = "Vtop__ALL"
# Of the switches of a design only these reach the library; tracing adds files and changes none.
_SWITCH = re.compile(r"^VM_(?:TIMING|COVERAGE|SC) = \d+$", re.MULTILINE)
# Every file of a model includes this before anything of the design.
_HEADER = "library.h"
_HEADER_TEXT = '#include "verilated.h"\n#include "verilated_dpi.h"\n#include "verilated_timing.h"\n'
# The header as text, alone and for the two sets of flags it is compiled for, as Verilator's makefile calls
# them, and compiled for both.
_TEXTS = (_HEADER, f"{_HEADER}.fast", f"{_HEADER}.slow")
_COMPILED = (f"{_HEADER}.fast.gch", f"{_HEADER}.slow.gch")


def provide(
    fingerprint: Sequence[str],
    plain: Callable[[Path], Path],
    objects: Path,
    sources: Path,
    make: Callable[[list[str]], None],
) -> list[str]:
    """Put the shared object files into ``objects``, where ``make`` takes them for already compiled.

    They are kept in the cache, by their sources and the ``fingerprint`` of tools and flags. ``objects`` is
    the folder Verilator has just written, ``sources`` that of the C++ models; ``make`` makes the targets that
    nobody has compiled before.  Of several builds at a time, one compiles and the others wait. Returns the
    variables with which ``make`` uses the shared header too, compiled ahead.  It stands in for Verilator's
    own, which includes the design and so would be compiled for each, twice.  ``plain`` returns a name of a
    folder that ``make`` can read.
    """
    makefiles = _makefiles(objects)
    wanted: dict[str, tuple[Sequence[str], str]] = {
        name: ((name,), key) for name, key in _shared(fingerprint, makefiles, sources)
    }
    # Designs of one file have no header of their own. A compiled header serves one set of macros only, and
    # it is 100 MB large: not worth it for tracing.
    if "VM_PARALLEL_BUILDS = 1" in makefiles and "VM_TRACE = 1" not in makefiles:
        wanted[_HEADER] = (_COMPILED, key_of([_HEADER_TEXT, *fingerprint]))
        for name in _TEXTS:
            (objects / name).write_text(_HEADER_TEXT)
    cache = BuildCache("objects")
    with cache.locked("compiling"):
        missing = [names for names, key in wanted.values() if cache.find(key) is None]
        if missing:
            make([name for names in missing for name in names])
        entries = {
            name: cache.get(key, partial(_copy, (*_TEXTS, *names) if name == _HEADER else names, objects))[0]
            for name, (names, key) in wanted.items()
        }
    header = entries.pop(_HEADER, None)
    for name, entry in entries.items():
        if wanted[name][0] not in missing:
            _copy([name], entry, objects)
    if header is None:
        return []
    place = plain(header) / _HEADER
    included = [f"VK_PCH_I_{kind.upper()}=-include {place}.{kind}" for kind in ("fast", "slow")]
    return [f"VK_PCH_H={place}", *included]


def object_files(objects: Path) -> list[Path]:
    """Return the object files that make will make in ``objects``, by the makefiles that are there."""
    makefiles = _makefiles(objects)
    alone = "VM_PARALLEL_BUILDS = 1" in makefiles
    names = [name for group, name in _listed(makefiles) if alone or group in _SHARED]
    return [objects / f"{name}.o" for name in (*names, *(() if alone else (_ALL,)))]


def _makefiles(objects: Path) -> str:
    return (objects / "Vtop_classes.mk").read_text() + (objects / "Vtop.mk").read_text()


def _listed(makefiles: str) -> Iterator[tuple[str, str]]:
    """Yield each file of the lists in the makefiles, after the name of its list."""
    for group, names in _LIST.findall(makefiles):
        for name in names.replace("\\", "").split():
            yield group, name


def _copy(names: Iterable[str], source: Path, destination: Path) -> None:
    for name in names:
        shutil.copyfile(source / name, destination / name)


def _shared(fingerprint: Sequence[str], makefiles: str, sources: Path) -> Iterator[tuple[str, str]]:
    """Return names and keys of the object files that do not see the design."""
    switches = sorted(_SWITCH.findall(makefiles))
    headers = [path.read_text() for path in sorted(sources.glob("*.h"))]
    for group, name in _listed(makefiles):
        text = ""
        if group not in _SHARED:
            continue
        if group == "VM_USER_CLASSES":
            source = sources / f"{name}.cpp"
            text = source.read_text() if source.exists() else '#include "Vtop.h"'
            if '#include "Vtop' in text:
                continue  # sees the design
        yield f"{name}.o", key_of([name, text, *(headers if text else ()), *switches, *fingerprint])
