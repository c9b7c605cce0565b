"""Files a run leaves behind: written whole under a temporary name, then renamed into place."""

import csv
import errno
import io
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from hw.errors import InputError

_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


@contextmanager
def refused(field: str, path: Path, legal: str = "writable") -> Iterator[None]:
    """Turn errors of the system within the ``with`` block into `InputError` of the path, with the reason."""
    try:
        yield
    except OSError as error:
        raise InputError(field, str(path), f"{legal} ({error.strerror})") from error


def write_bytes(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path``; a reader sees the old file or the new one, never half of one.

    A link is followed, and its target replaced.  A pipe, a device or the standard output is written to in
    place; a named pipe waits for its reader. Raises `InputError` when
    the directory cannot be made or written to, or has no room; the old file then stays.
    """
    with refused("output file", path):
        if (stream := _stream(path)) is None:
            _replace(Path(os.path.realpath(path)), data)
        else:
            with stream:
                stream.write(data)


def write_text(path: Path, text: str) -> None:
    """Put ``text`` at ``path`` in UTF-8; see `write_bytes`."""
    write_bytes(path, text.encode())


@contextmanager
def fresh_directory(field: str, directory: Path) -> Iterator[Path]:
    """Return a folder beside ``directory`` that replaces it once all is written."""
    with refused(field, directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as beside:
            fresh = Path(beside) / "new"
            fresh.mkdir()
            yield fresh
            old = Path(beside) / "old"
            if directory.exists():
                directory.rename(old)
            try:
                fresh.rename(directory)
            except OSError:
                old.rename(directory)
                raise


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows for spreadsheets, under a line with all their names; a missing value is empty."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, dict.fromkeys(name for row in rows for name in row), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def file_mode(path: Path) -> int | None:
    """Return kind and permissions of the file at ``path``, links followed; None for a missing one.

    Raises `OSError` for a loop of links, or a directory that cannot be searched.
    """
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stream(path: Path) -> IO[bytes] | None:
    """Open a pipe, a device or a standard stream at ``path``; None for a file that can be replaced."""
    text = os.path.abspath(path)
    found = _DESCRIPTOR.fullmatch(text)
    if found or text in _STANDARD:
        sys.stdout.flush()
        return os.fdopen(os.dup(int(found[1]) if found else _STANDARD[text]), "wb")
    mode = file_mode(path)
    if mode is None or stat.S_ISREG(mode):
        return None
    if stat.S_ISFIFO(mode):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            print(f"loomwork: waiting for a reader of {path}", file=sys.stderr)
        else:
            os.set_blocking(handle, True)
            return os.fdopen(handle, "wb")
    return path.open("wb")


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = file_mode(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """Return the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
