"""A user's paths, checked before any work."""

import os
import stat
import tempfile
from pathlib import Path

from hw.errors import InputError
from sim.host.files import file_mode, refused


def check_readable(field: str, path: Path) -> None:
    """Refuse a file that is missing or cannot be read, and a device, which may have no end.

    Raises `InputError` under the name ``field``.
    """
    with refused(field, path, "a readable file"):
        mode = file_mode(path)
        if mode is None:
            raise InputError(field, str(path), "a file that exists")
        if stat.S_ISFIFO(mode):
            return  # opening it would consume its data
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError(field, str(path), "a file, and this is a device")
        path.open("rb").close()


def check_writable(field: str, path: Path | None) -> None:
    """Refuse an output path that cannot be written, before the work; None is no path.

    Raises `InputError` when the path is a directory or a file that cannot be written, or its directory is
    missing or cannot be written to.
    """
    if path is None:
        return
    with refused(field, path):
        mode = file_mode(path)
        if mode is not None and stat.S_ISDIR(mode):
            raise InputError(field, str(path), "a file, and this is a directory")
        if mode is not None and stat.S_ISREG(mode):
            path.open("r+b").close()
        elif mode is not None:
            return  # a pipe or device, which only writing to it could try
        above = Path(os.path.realpath(path)).parent
        if not above.is_dir():
            raise InputError(field, str(path), "in a directory that exists")
        _try(above)


def check_directory(field: str, path: Path) -> None:
    """Refuse a directory that could not be made or written to.

    Raises `InputError` when it, or the nearest directory above it that exists, is none or cannot be written
    to.
    """
    above = path
    with refused(field, path):
        while file_mode(above) is None and above != above.parent:
            above = above.parent
        if not above.is_dir():
            raise InputError(field, str(path), f"a directory, and {above} is a file")
        _try(above)


def check_distinct(*named: tuple[str, Path | None]) -> None:
    """Refuse one file under two names: writing the second would replace the first.

    Links are followed. Raises `InputError` under the second name.
    """
    seen: dict[object, str] = {}
    for name, path in named:
        if path is None:
            continue
        try:
            found = os.stat(path)
        except OSError:
            key: object = os.path.realpath(path)
        else:
            if not stat.S_ISREG(found.st_mode):
                continue  # a device may take several files
            key = (found.st_dev, found.st_ino)
        first = seen.setdefault(key, name)
        if first != name:
            raise InputError(name, str(path), f"another file than {first}")


def _try(directory: Path) -> None:
    """Make a file in a directory and drop it: the only test that is right for every file system and user."""
    tempfile.TemporaryFile(dir=directory).close()
