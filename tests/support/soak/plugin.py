"""
A pytest plugin behind `make soak` (``-p tests.support.soak.plugin``).

Each test's outcome is appended to ``build/soak/results.jsonl`` when it ends, with the digest of the files
that its test file depends on.  A test that passed on the same digest does not run again: a stopped soak
resumes.  ``--soak-fresh`` forgets outcomes and keeps times.  ``--soak-since COMMIT`` leaves out tests that no
file changed since that commit can reach.  New files come first, then the slowest of the last run.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.soak.dependencies import Dependencies

#: Tests of at least this many seconds get a line of their own in the listing.
LONG_SECONDS = 30.0


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@dataclass
class Results:
    """Outcomes and times of earlier runs, a line of JSON for each."""

    path: Path
    passed: dict[str, str] = field(default_factory=dict)  #: Digest on which each test passed last.
    seconds: dict[str, float] = field(default_factory=dict)  #: Wall-clock time of each test's last run.

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file; a last line that an interrupt cut short is left out."""
        results = cls(path)
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                results._apply(json.loads(line))
            except json.JSONDecodeError:
                continue
        return results

    def _apply(self, entry: dict[str, Any]) -> None:
        if entry.get("fresh"):
            self.passed.clear()
            return
        self.seconds[entry["test"]] = entry["seconds"]
        if entry["outcome"] == "passed":
            self.passed[entry["test"]] = entry["digest"]
        else:
            self.passed.pop(entry["test"], None)

    def add(self, **entry: Any) -> None:
        """Append an entry."""
        self._apply(entry)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def listing(self, tests: list[str], workers: int) -> Iterator[str]:
        """Yield the time of each file's last run, slowest first, and the total that is left."""
        files: dict[str, list[str]] = defaultdict(list)
        for test in tests:
            files[_file_of(test)].append(test)
        total, unknown = 0.0, 0
        for file, own in sorted(files.items(), key=lambda item: -self.time_of(item[1])):
            missing = sum(test not in self.seconds for test in own)
            total, unknown = total + self.time_of(own), unknown + missing
            new = f", {missing} never timed" if missing else ""
            yield f"{self.time_of(own):8.0f} s  {file} ({len(own)} tests{new})"
            for test in own:
                if self.seconds.get(test, 0.0) >= LONG_SECONDS:
                    yield f"{self.seconds[test]:17.0f} s  {test.partition('::')[2]}"
        yield (
            f"left: {len(tests)} tests, {total / 60:.0f} minutes of tests, "
            f"{total / 60 / workers:.0f} on {workers} workers; {unknown} tests never timed"
        )

    def time_of(self, tests: list[str]) -> float:
        """Return the seconds that ``tests`` took last."""
        return sum(self.seconds.get(test, 0.0) for test in tests)


class Soak:
    """The plugin, in the controlling process and in each worker."""

    def __init__(self, config: pytest.Config, plan: dict[str, Any]) -> None:
        self._config = config
        self._plan = plan
        self._results = Results.read(config.rootpath / "build" / "soak" / "results.jsonl")
        self._spent: dict[str, float] = defaultdict(float)
        self._bad: dict[str, str] = {}
        self._listed = False

    def pytest_configure_node(self, node: Any) -> None:
        """Send workers the plan, so that all collect the same tests however many have ended."""
        node.workerinput["soak"] = self._plan

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out tests that have passed and files that the change does not touch; new files first."""
        digests, touched = self._plan["digests"], self._plan["touched"]
        keep: list[pytest.Item] = []
        left: list[pytest.Item] = []
        for item in items:
            file = _file_of(item.nodeid)
            done = self._plan["passed"].get(item.nodeid) == digests.get(file)
            (left if done or (touched is not None and file not in touched) else keep).append(item)
        if left:
            config.hook.pytest_deselected(items=left)
        times = self._plan["times"]
        items[:] = sorted(keep, key=lambda item: -times.get(_file_of(item.nodeid), math.inf))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """List tests where one process runs them."""
        if not hasattr(session.config, "workerinput") and session.items:
            self._list([item.nodeid for item in session.items], 1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """List tests where workers run them."""
        self._list(ids, len(node.config.option.tx))

    def _list(self, ids: list[str], workers: int) -> None:
        if not self._listed:
            self._listed = True
            reporter = self._config.pluginmanager.get_plugin("terminalreporter")
            reporter.write_line("")
            for line in self._results.listing(ids, max(1, workers)):
                reporter.write_line(line)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test when it has ended; skipped and failed ones run again next time."""
        if hasattr(self._config, "workerinput"):
            return
        self._spent[report.nodeid] += report.duration
        if report.outcome != "passed":
            self._bad[report.nodeid] = report.outcome
        if report.when == "teardown":
            self._results.add(
                test=report.nodeid,
                outcome=self._bad.pop(report.nodeid, "passed"),
                seconds=round(self._spent.pop(report.nodeid), 2),
                digest=self._plan["digests"].get(_file_of(report.nodeid), ""),
                at=round(time.time()),
            )

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Call it a success when nothing is left to run."""
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not hasattr(session.config, "workerinput"):
            session.exitstatus = pytest.ExitCode.OK


def changed_since(root: Path, commit: str) -> list[str]:
    """Return the files that differ from ``commit`` in the working tree, new ones too."""

    def git(*arguments: str) -> list[str]:
        command = ["git", *arguments, "-z"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise pytest.UsageError(f"SINCE={commit}: {done.stderr.strip()}")
        return [name for name in done.stdout.split("\0") if name]

    return [
        *git("diff", "--name-only", "--no-renames", commit),
        *git("ls-files", "--others", "--exclude-standard"),
    ]


def _plan(root: Path, results: Results, since: str | None) -> dict[str, Any]:
    """Return all that a worker needs to choose and order its tests."""
    dependencies = Dependencies.of(root)
    tests = sorted(dependencies.tests)
    times: dict[str, float] = defaultdict(float)
    for test, seconds in results.seconds.items():
        times[_file_of(test)] += seconds
    return {
        "digests": {test: dependencies.digest(test) for test in tests},
        "passed": results.passed,
        "times": dict(times),
        "touched": sorted(dependencies.touched(changed_since(root, since), tests)) if since else None,
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that the Makefile passes."""
    group = parser.getgroup("soak")
    group.addoption("--soak-since", metavar="COMMIT", help="only tests that changes since COMMIT can reach")
    group.addoption("--soak-fresh", action="store_true", help="run tests again that have passed")


def pytest_configure(config: pytest.Config) -> None:
    """Make the plan in the controlling process; take it over in a worker."""
    if hasattr(config, "workerinput"):
        plan = config.workerinput["soak"]
    else:
        results = Results.read(config.rootpath / "build" / "soak" / "results.jsonl")
        if config.option.soak_fresh:
            results.add(fresh=True)
        plan = _plan(config.rootpath, results, config.option.soak_since)
    config.pluginmanager.register(Soak(config, plan), "soak")
