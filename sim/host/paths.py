"""Paths that a user gives, checked before any work begins."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hw.errors import InputError


def check_readable(field: str, path: Path) -> None:
    """Refuse a file that is not there or cannot be read.

    Raises `InputError` under the name ``field``.
    """
    if not path.exists():
        raise InputError(field, str(path), "a file that exists")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(field, str(path), f"a readable file ({error.strerror})") from error


def check_writable(field: str, path: Path) -> None:
    """Refuse an output path that could not be written, before the work whose result it is to hold.

    Raises `InputError` when the path is a directory, or the directory it is in is missing or cannot be
    written to.
    """
    if path.is_dir():
        raise InputError(field, str(path), "a file, and this is a directory")
    if not path.parent.is_dir():
        raise InputError(field, str(path), "in a directory that exists")
    _try(field, path, path.parent)


def check_directory(field: str, path: Path) -> None:
    """Refuse a directory that could not be made or written to.

    Raises `InputError` when it, or the nearest directory above it that exists, is none or cannot be written
    to.
    """
    above = path
    while not above.exists() and above != above.parent:
        above = above.parent
    if not above.is_dir():
        raise InputError(field, str(path), f"a directory, and {above} is a file")
    _try(field, path, above)


def _try(field: str, path: Path, directory: Path) -> None:
    """Make a file in a directory and drop it: the only test that is right for every file system and user."""
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise InputError(field, str(path), f"writable ({error.strerror})") from error
