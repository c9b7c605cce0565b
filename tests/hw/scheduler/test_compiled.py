"""The cache of compiled functions: one for each state of the sources, the last few only, where it can be."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from hw.scheduler import compiled
from hw.scheduler.compiled import _cache, reported_compiling


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "sources" / "planner" / "limits.py"
    path.parent.mkdir(parents=True)
    path.write_text("LIMIT = 1\n")
    path.with_name("kernel.py").write_text(
        "from hw.sources.compiled import compiled\nfrom hw.sources.planner.limits import LIMIT\n"
    )
    return path


def test_each_state_of_the_sources_has_its_own(tmp_path, source):
    sources, parent = tmp_path / "sources", tmp_path / "cache"
    first = _cache(sources, parent)
    assert first.is_dir()
    assert _cache(sources, parent) == first
    source.write_text("LIMIT = 2\n")
    changed = _cache(sources, parent)
    assert changed != first
    source.with_name("other.py").write_text("OTHER = 1\n")
    assert _cache(sources, parent) == changed, "nothing that is compiled depends on it"
    source.rename(source.with_name("moved.py"))
    assert _cache(sources, parent) not in (first, changed)


def test_the_states_used_longest_ago_go(tmp_path, source, monkeypatch):
    monkeypatch.setattr(compiled, "_KEPT", 2)
    found = []
    for limit in range(3):
        source.write_text(f"LIMIT = {limit}\n")
        found.append(_cache(tmp_path / "sources", tmp_path / "cache"))
        os.utime(found[-1], (limit, limit))
    assert [folder.is_dir() for folder in found] == [False, True, True]


def test_where_the_folder_cannot_be_written_another_is_taken(tmp_path, source):
    file = tmp_path / "file"
    file.write_text("")
    assert _cache(tmp_path / "sources", file / "compiled").is_dir()


def test_the_cache_is_the_users_wherever_the_command_runs(tmp_path):
    text = "import numba, hw.scheduler.compiled; print(numba.config.CACHE_DIR)"
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(Path.cwd())}
    environ.pop("NUMBA_CACHE_DIR", None)
    said = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert Path(said.stdout.strip()).parent == tmp_path / "cache" / "loomwork" / "compiled"


def test_compiling_is_told_and_only_then():
    told = []

    @numba.njit
    def double(value):
        return 2 * value

    with reported_compiling(told.append) as compiling:
        assert double(np.int64(4)) == 8
        known = list(told), compiling.seconds
        assert known[1]
        assert (told[0], told[-1]) == (True, False)
        assert double(np.int64(5)) == 10
        assert (told, compiling.seconds) == known
