"""Files a run leaves behind: written whole under a temporary name, then renamed into place."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hw.errors import InputError


def write_bytes(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path``; whoever reads the path sees the old file or the new one, never half of one.

    Raises `InputError` when the directory cannot be made or written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError("output file", str(path), f"writable ({error.strerror})") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise InputError("output file", str(path), f"writable ({error.strerror})") from error
        raise


def write_text(path: Path, text: str) -> None:
    """Put ``text`` at ``path`` in UTF-8; see `write_bytes`."""
    write_bytes(path, text.encode())


def _umask() -> int:
    """Give the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
