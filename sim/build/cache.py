"""One cache for each user: builds, each made once, by one process, and there whole or not at all."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hw.errors import InputError

#: Environment variable that moves the cache.
VARIABLE = "LOOMWORK_CACHE"
#: File of an entry with the digests of its others: whether it is whole.
_CONTENTS = "contents.json"


def default_directory() -> Path:
    """Return the cache's place: ``$LOOMWORK_CACHE``, else ``loomwork`` in XDG's directory of caches."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).absolute()
    user = os.environ.get("XDG_CACHE_HOME", "")
    # A relative path is to be ignored.
    return Path(user if os.path.isabs(user) else os.path.expanduser("~/.cache"), "loomwork").absolute()


class BuildCache:
    """Finished builds of one kind by key, in a directory that is made on first use.

    A build is made in a folder of its own and renamed to its key when it is finished.  A build that was
    interrupted, even by ``kill -9``, leaves no entry, and the next process to want it removes the remains. Of
    several processes that want one key, one builds and the others wait.  The lock is the kernel's and ends
    with the process that holds it. An entry is found only if every file is as it was
    when it was finished; one that was damaged since is made anew.

    ``kind``: of the builds; a folder of its own within the cache. ``root``: the cache's place where it is not
    the user's; see `default_directory`.
    """

    def __init__(self, kind: str, root: Path | None = None) -> None:
        self.directory = (root or default_directory()) / kind

    def find(self, key: str) -> Path | None:
        """Return the finished build of ``key`` and note that it is used, None when there is none."""
        entry = self.directory / key
        if not is_whole(entry):
            return None
        with contextlib.suppress(OSError):  # somebody else's cache, which may be read
            os.utime(entry)
        return entry

    def get(
        self, key: str, make: Callable[[Path], None], *, waiting: Callable[[], None] = lambda: None
    ) -> tuple[Path, bool]:
        """Return the build of ``key``, made first where it is not there, and whether it was there.

        ``make`` builds in the empty folder of its argument; an exception leaves no entry.  ``waiting`` is
        called once when another process is building ``key`` right now. Raises `InputError` when the cache's
        folder cannot be made or written.
        """
        if (entry := self.find(key)) is not None:
            return entry, True
        with self.locked(key, waiting=waiting):
            if (entry := self.find(key)) is not None:
                return entry, True
            return self._make(key, make), False

    @contextlib.contextmanager
    def locked(self, key: str, *, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Let no other process build or remove ``key`` during the ``with`` block; see `get`."""
        file = self.directory / f"{key}.lock"
        lock = self._lock(file, waiting)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            os.close(lock)

    def remove(self, key: str) -> None:
        """Remove an entry, whole or damaged."""
        with self.locked(key):
            entry = self.directory / key
            with contextlib.suppress(OSError):
                (entry / _CONTENTS).unlink()  # first: nobody is to find an entry that is going
            _remove(entry)

    def _lock(self, file: Path, waiting: Callable[[], None]) -> int:
        while True:
            try:
                self.directory.mkdir(parents=True, exist_ok=True)
                lock = os.open(file, os.O_CREAT | os.O_RDWR, 0o666)
            except OSError as error:
                raise self._refusal(error) from error
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(file), os.fstat(lock)):
                    return lock
            os.close(lock)  # its holder has removed the file: others lock another file

    def _make(self, key: str, make: Callable[[Path], None]) -> Path:
        entry = self.directory / key
        for remains in (entry, *self.directory.glob(f"{key}.building-*")):
            _remove(remains)
        try:
            folder = Path(tempfile.mkdtemp(dir=self.directory, prefix=f"{key}.building-"))
        except OSError as error:
            raise self._refusal(error) from error
        try:
            make(folder)
            (folder / _CONTENTS).write_text(json.dumps(_contents(folder), indent=1))
            os.chmod(folder, 0o755)
            os.replace(folder, entry)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return entry

    def _refusal(self, error: OSError) -> InputError:
        return InputError(
            f"cache ({VARIABLE} or XDG_CACHE_HOME)",
            str(self.directory),
            f"a writable folder ({error.strerror})",
        )


def is_whole(entry: Path) -> bool:
    """Tell whether an entry exists and its files match the digests written when it was finished."""
    try:
        return bool(json.loads((entry / _CONTENTS).read_bytes()) == _contents(entry))
    except (OSError, ValueError):
        return False


def _contents(folder: Path) -> dict[str, str]:
    """Return SHA-256 and permission to execute of each file but the list of these, by file name."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.name != _CONTENTS:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            found[path.name] = f"{digest} {'program' if os.access(path, os.X_OK) else 'data'}"
    return found


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
