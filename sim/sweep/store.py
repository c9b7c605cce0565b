"""The database of a sweep: its points, their evaluations, and the claims of processes.

One SQLite file.  Every evaluation is stored once, under the key of everything it depends on. Processes on any
machines that share the file add to it; each works on the keys that it has claimed.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hw.errors import InputError
from sim.host.tree import process
from sim.sweep.points import DesignPoint, Evaluation

#: Format and its version.
FORMAT = "loomwork-sweep-2"
#: Seconds without renewal after which a claim of another machine lapses.
LAPSE_SECONDS = 60.0
#: Seconds to wait while another process writes.
_BUSY_SECONDS = 60.0
_TABLES = """
CREATE TABLE IF NOT EXISTS sweep (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS points (number INTEGER PRIMARY KEY, document TEXT);
CREATE TABLE IF NOT EXISTS parts (point INTEGER, outcome TEXT, PRIMARY KEY (point, outcome));
CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, document TEXT);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT, beat REAL);
"""
_T = TypeVar("_T")
_OUTCOME, _POINT = TypeAdapter(Evaluation), TypeAdapter(DesignPoint)


class Store:
    """The database at ``path``; ``make`` creates a missing one.

    Raises `InputError` when the file is missing, no database of a sweep, of another version of the program,
    or cannot be written.
    """

    def __init__(self, path: Path, *, make: bool = False) -> None:
        self.path = path
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{_began(os.getpid())}"
        if not make and not path.is_file():
            raise InputError("database", str(path), "a file that exists")
        try:
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
            if make and not tables:
                self._make()
            elif "sweep" not in tables:
                self.close()
                raise InputError("database", str(path), "a sweep's: it has no table of that name")
        except sqlite3.Error as error:
            raise InputError("database", str(path), f"a sweep's, and writable ({error})") from error
        found = self._value("format")
        if found != FORMAT:
            self.close()
            raise InputError(f"format of {path}", found, f"{FORMAT!r}; another version of Loomwork wrote it")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make(self) -> None:
        with self._writing():
            for line in _TABLES.strip().splitlines():
                self._connection.execute(line)
            self._connection.execute("INSERT OR IGNORE INTO sweep VALUES ('format', ?)", (FORMAT,))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Make the ``with`` block one transaction that excludes other writers."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise InputError("database", str(self.path), f"a sweep's, and writable ({error})") from error

    def _value(self, name: str) -> str | None:
        found = self._connection.execute("SELECT value FROM sweep WHERE name = ?", (name,)).fetchone()
        return found[0] if found else None

    @property
    def spec(self) -> Mapping[str, Any] | None:
        """The sweep's file as plain values, None before it is known."""
        text = self._value("spec")
        return None if text is None else json.loads(text)

    def begin(self, spec: Mapping[str, Any], *, join: bool, code: str = "") -> None:
        """Record the sweep, this process and its ``code``; evaluations of another sweep or code stay.

        Raises `InputError` when another process works on it and this one does not join, or joins another.
        """
        text = json.dumps(spec)
        with self._writing() as connection:
            others = []
            owners = {owner for (owner,) in connection.execute("SELECT DISTINCT owner FROM claims")}
            for owner in owners - {self.owner}:
                if self._gone(owner):
                    connection.execute("DELETE FROM claims WHERE owner = ?", (owner,))
                else:
                    others.append(owner)
            if others and not join:
                legal = f"left alone while process {_spelled(others[0])} works on it, or joined with --join"
                raise InputError("database", str(self.path), legal)
            if (self._value("spec"), self._value("code")) != (text, code):
                if others:
                    legal = "that of the same sweep by the same Loomwork, to be joined"
                    raise InputError("database", str(self.path), legal)
                rows = (("spec", text), ("code", code))
                connection.executemany("INSERT OR REPLACE INTO sweep VALUES (?, ?)", rows)
                connection.execute("DELETE FROM points")
                connection.execute("DELETE FROM parts")
            connection.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)",
                (f"process {self.owner}", self.owner, time.time()),
            )

    def forget_failures(self) -> None:
        """Drop failures: a tool or memory may now be available. Predictions would fail again, and stay."""
        failed = "json_extract(document, '$.failure') != '' AND json_extract(document, '$.fidelity')"
        with self._writing() as connection:
            connection.execute(f"DELETE FROM outcomes WHERE {failed} != 'prediction'")

    def end(self) -> None:
        """Release all claims."""
        with self._writing() as connection:
            connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))

    def add_points(self, points: Iterable[tuple[int, DesignPoint]]) -> None:
        """Store points by their numbers; existing ones stay."""
        with self._writing() as connection:
            rows = ((number, _POINT.dump_json(point).decode()) for number, point in points)
            connection.executemany("INSERT OR IGNORE INTO points VALUES (?, ?)", rows)

    def add_parts(self, parts: Iterable[tuple[int, str]]) -> None:
        """Record the evaluations, by key, of points, by number."""
        with self._writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO parts VALUES (?, ?)", parts)

    def claim(self, keys: Sequence[str]) -> list[str]:
        """Claim the ``keys`` that are neither known nor claimed, and return them."""
        now, mine = time.time(), []
        with self._writing() as connection:
            for key in keys:
                if connection.execute("SELECT 1 FROM outcomes WHERE key = ?", (key,)).fetchone():
                    continue
                row = connection.execute("SELECT owner FROM claims WHERE key = ?", (key,)).fetchone()
                if row and row[0] != self.owner and not self._gone(row[0]):
                    continue
                row = (key, self.owner, now)
                connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", row)
                mine.append(key)
        return mine

    def beat(self) -> None:
        """Renew the claims' time."""
        with self._writing() as connection:
            row = (time.time(), self.owner)
            connection.execute("UPDATE claims SET beat = ? WHERE owner = ?", row)

    def finish(self, outcomes: Mapping[str, Evaluation]) -> None:
        """Keep evaluations by their keys; one that another process stored first stays."""
        with self._writing() as connection:
            rows = ((key, _OUTCOME.dump_json(outcome).decode()) for key, outcome in outcomes.items())
            connection.executemany("INSERT OR IGNORE INTO outcomes VALUES (?, ?)", rows)
            connection.executemany("DELETE FROM claims WHERE key = ?", ((key,) for key in outcomes))

    def outcomes(self, keys: Iterable[str]) -> dict[str, Evaluation]:
        """Return the known evaluations by key."""
        found = {}
        for key in keys:
            row = self._connection.execute("SELECT document FROM outcomes WHERE key = ?", (key,)).fetchone()
            if row:
                found[key] = self._read(_OUTCOME, row[0])
        return found

    def points(self) -> Iterator[tuple[int, DesignPoint, tuple[Evaluation, ...]]]:
        """Return all points by number, each with its evaluations."""
        outcomes = {
            key: self._read(_OUTCOME, document)
            for key, document in self._connection.execute("SELECT key, document FROM outcomes")
        }
        parts: dict[int, list[Evaluation]] = {}
        for number, key in self._connection.execute("SELECT point, outcome FROM parts ORDER BY rowid"):
            if key in outcomes:
                parts.setdefault(number, []).append(outcomes[key])
        rows = self._connection.execute("SELECT number, document FROM points ORDER BY number")
        for number, document in rows:
            yield number, self._read(_POINT, document), tuple(parts.get(number, ()))

    def _read(self, kind: TypeAdapter[_T], document: str) -> _T:
        try:
            return kind.validate_json(document)
        except ValidationError as error:
            raise InputError(
                "database", str(self.path), "whole: a point or outcome in it is damaged"
            ) from error

    def _gone(self, owner: str) -> bool:
        """Return whether a process has ended: seen on this machine; silent for `LAPSE_SECONDS` on another."""
        host, pid, began = owner.rsplit(":", 2)
        if host == socket.gethostname():
            return _began(int(pid)) != began
        query = "SELECT max(beat) FROM claims WHERE owner = ?"
        (last,) = self._connection.execute(query, (owner,)).fetchone()
        return last is None or time.time() - last > LAPSE_SECONDS


def is_database(path: Path) -> bool:
    """Return whether a file is SQLite's, by its first bytes (its format's documentation, 1.3)."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def _spelled(owner: str) -> str:
    host, pid, _ = owner.rsplit(":", 2)
    return f"{pid} on {host}"


def _began(pid: int) -> str:
    found = process(pid)
    return found.began if found else ""
