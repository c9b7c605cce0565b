"""A folder of finished builds: each made once, by one process, and there whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hw.errors import InputError

#: Environment variable that moves the cache.
VARIABLE = "LOOMWORK_CACHE"


def default_directory() -> Path:
    """Give the cache's place: ``$LOOMWORK_CACHE``, or ``build/sim-cache`` under the working directory."""
    return Path(os.environ.get(VARIABLE) or Path("build", "sim-cache")).absolute()


class BuildCache:
    """Finished builds by key, in a directory that is made on first use.

    A build is made in a folder of its own and renamed to its key when it is finished: a build that was
    interrupted, even by ``kill -9``, leaves no entry, and the next process to want it removes the remains. Of
    several processes that want one key, one builds and the others wait; the lock is the kernel's and ends
    with the process that holds it.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or default_directory()

    def find(self, key: str) -> Path | None:
        """Give the finished build of ``key``, None when there is none."""
        entry = self.directory / key
        return entry if entry.exists() else None

    def get(
        self, key: str, make: Callable[[Path], None], *, waiting: Callable[[], None] = lambda: None
    ) -> tuple[Path, bool]:
        """Give the build of ``key``, made first where it is not there, and whether it was there.

        ``make`` builds in the empty folder it is given; what it raises leaves no entry.  ``waiting`` is
        called once when another process is building ``key`` right now. Raises `InputError` when the cache's
        folder cannot be made or written.
        """
        if (entry := self.find(key)) is not None:
            return entry, True
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.directory / f"{key}.lock", os.O_CREAT | os.O_RDWR, 0o666)
        except OSError as error:
            raise self._refusal(error) from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
            if (entry := self.find(key)) is not None:
                return entry, True
            return self._make(key, make), False
        finally:
            os.close(lock)

    def _make(self, key: str, make: Callable[[Path], None]) -> Path:
        for remains in self.directory.glob(f"{key}.building-*"):
            shutil.rmtree(remains, ignore_errors=True)
        try:
            folder = Path(tempfile.mkdtemp(dir=self.directory, prefix=f"{key}.building-"))
        except OSError as error:
            raise self._refusal(error) from error
        try:
            make(folder)
            os.chmod(folder, 0o755)
            os.replace(folder, self.directory / key)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self.directory / key

    def _refusal(self, error: OSError) -> InputError:
        return InputError(
            f"simulator cache ({VARIABLE})", str(self.directory), f"a writable folder ({error.strerror})"
        )
