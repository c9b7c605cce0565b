"""Writing a package: all or nothing, without loss of the user's files."""

import filecmp
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hw.design import Design
from hw.errors import InputError
from hw.package.render import META, render

_FIELD = "output directory"


def write_package(design: Design, directory: Path | str) -> tuple[Path, ...]:
    """Write the package of ``design`` to ``directory`` and return the files.

    Raises `InputError` as `write_files`.
    """
    return write_files(render(design), directory)


def write_files(files: dict[str, str], directory: Path | str) -> tuple[Path, ...]:
    """Write the text of every file, by name, to ``directory``; the last one is ``meta.json`` and lists them.

    The files are written beside the directory and renamed into it.  Files of an earlier package are replaced
    or removed, equal ones are left untouched; others (a Vitis build) stay.  Raises `InputError` when the
    directory cannot be written, or a file would replace one that is not of an earlier package.
    """
    directory = Path(directory)
    earlier = _earlier_files(directory)
    for name in files:
        if name not in earlier and os.path.lexists(directory / name):
            raise InputError(_FIELD, str(directory), f"without a {name} that is not Loomwork's")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as beside:
            # One level down: only the owner may read the temporary directory itself.
            fresh = Path(beside) / "package"
            fresh.mkdir()
            for name, text in files.items():
                (fresh / name).parent.mkdir(exist_ok=True)
                (fresh / name).write_text(text, encoding="utf-8")
            if directory.exists():
                _replace(directory, fresh, files, earlier)
            else:
                fresh.rename(directory)
    except OSError as error:
        raise InputError(_FIELD, str(directory), f"writable ({error.strerror})") from error
    return tuple(directory / name for name in files)


def _replace(directory: Path, fresh: Path, files: dict[str, str], earlier: set[str]) -> None:
    """Rename fresh files over earlier ones; ``meta.json`` is last, as it lists the others."""
    for name in files:
        (directory / name).parent.mkdir(exist_ok=True)
        # An equal file keeps its time: make would synthesize it again.
        if not _equal(fresh / name, directory / name):
            os.replace(fresh / name, directory / name)
    for name in earlier - set(files):
        (directory / name).unlink(missing_ok=True)


def _equal(fresh: Path, earlier: Path) -> bool:
    """Return whether ``earlier`` is a file, no link, with the bytes of ``fresh``."""
    return earlier.is_file() and not earlier.is_symlink() and filecmp.cmp(fresh, earlier, shallow=False)


def configuration_of(directory: Path) -> str:
    """Return the hash of the configuration of a kernel's package in ``directory``; nothing without one."""
    meta = _earlier_meta(directory)
    return str(meta.get("config_hash", "")) if "kernel" in meta else ""


def _earlier_files(directory: Path) -> set[str]:
    """Return the file names of an earlier package in ``directory``."""
    meta = _earlier_meta(directory)
    listed = meta.get("files") if "kernel" in meta or "core" in meta else None
    names = {str(name) for name in listed} if isinstance(listed, list) else set()
    # Names outside the directory are ignored.
    return {name for name in names if not Path(name).is_absolute() and ".." not in Path(name).parts}


def _earlier_meta(directory: Path) -> dict[str, Any]:
    try:
        meta: Any = json.loads((directory / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return meta if isinstance(meta, dict) else {}
