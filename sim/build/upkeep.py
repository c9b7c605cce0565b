"""The cache as a whole: its entries, the damaged ones, and those that can go."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sim.build.cache import BuildCache, default_directory, is_whole

#: Kind that Numba keeps in its own way (`hw.scheduler.compiled`): nothing here can tell whether it is whole.
NUMBA = "compiled"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A finished build."""

    kind: str  #: Of the build; see `sim.build.cache.BuildCache`.
    key: str  #: Its name among its kind.
    size_bytes: int  #: Of all its files.
    used_seconds: float  #: When it was last used, since the epoch.

    @property
    def whole(self) -> bool:
        """Whether the files match the digests of the finished entry; Numba's own files have none."""
        return self.kind == NUMBA or is_whole(default_directory() / self.kind / self.key)

    def remove(self) -> None:
        """Remove it from the cache; raises `InputError` when the cache cannot be written."""
        BuildCache(self.kind).remove(self.key)


def entries() -> list[Entry]:
    """Return all entries of the user's cache, whole or damaged."""
    return [
        Entry(
            kind=kind.name,
            key=path.name,
            size_bytes=sum(file.stat().st_size for file in path.rglob("*") if file.is_file()),
            used_seconds=path.stat().st_mtime,
        )
        for kind in _folders(default_directory())
        for path in _folders(kind)
        if "." not in path.name  # nothing of a build that goes on
    ]


def outdated(
    found: list[Entry], now_seconds: float, *, older_seconds: float | None, most_bytes: int | None
) -> list[Entry]:
    """Choose the entries to remove: those not used for ``older_seconds``, and those used longest ago while
    the others take more than ``most_bytes``.  None leaves one of them out.
    """
    found = sorted(found, key=lambda entry: -entry.used_seconds)
    chosen, kept_bytes = [], 0
    for entry in found:
        old = older_seconds is not None and now_seconds - entry.used_seconds > older_seconds
        if old or (most_bytes is not None and kept_bytes + entry.size_bytes > most_bytes):
            chosen.append(entry)
        else:
            kept_bytes += entry.size_bytes
    return chosen


def _folders(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (below for below in sorted(path.iterdir()) if below.is_dir())
