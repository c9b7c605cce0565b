"""The build cache: once, whole, by one process, whatever happens to the others."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hw.errors import InputError
from sim.build.cache import BuildCache
from sim.host.digest import key_of

ROOT = Path(__file__).parents[3]
# Says when it has begun, writes half a build, waits for the file `go`, writes the rest.
BUILDER = """
import sys, time
from pathlib import Path
from sim.build.cache import BuildCache
directory = Path(sys.argv[1])
def make(folder):
    (folder / "first").write_text("half")
    with (directory / "builds").open("a") as log:
        log.write("x")
    while not (directory / "go").exists():
        time.sleep(0.01)
    (folder / "second").write_text("whole")
waiting = lambda: (directory / "waiting").touch()
print(BuildCache(directory).get("key", make, waiting=waiting)[1])
"""


def builder(directory):
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(directory)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def wait_for(condition):
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def make_file(folder):
    (folder / "second").write_text("whole")


def no_make(folder):
    raise AssertionError("made twice")


def test_what_is_made_once_is_found_again(tmp_path):
    cache = BuildCache(tmp_path)
    assert cache.find("key") is None
    path, cached = cache.get("key", make_file)
    assert not cached
    assert cache.get("key", no_make) == (path, True)
    assert cache.find("key") == path


def test_a_build_that_fails_leaves_nothing(tmp_path):
    cache = BuildCache(tmp_path)

    def make(folder):
        make_file(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.get("key", make)
    assert [path.name for path in tmp_path.iterdir()] == ["key.lock"]
    assert not cache.get("key", make_file)[1]


def test_a_killed_build_is_not_taken_for_a_finished_one(tmp_path):
    first = builder(tmp_path)
    wait_for(lambda: (tmp_path / "builds").exists())
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert BuildCache(tmp_path).find("key") is None
    assert list(tmp_path.glob("key.building-*/first"))
    path, cached = BuildCache(tmp_path).get("key", make_file)
    assert not cached
    assert [item.name for item in path.iterdir()] == ["second"]
    assert not list(tmp_path.glob("key.building-*"))


def test_of_two_processes_one_builds_and_the_other_waits(tmp_path):
    first = builder(tmp_path)
    wait_for(lambda: (tmp_path / "builds").exists())
    second = builder(tmp_path)
    wait_for(lambda: (tmp_path / "waiting").exists())
    (tmp_path / "go").touch()
    assert [process.communicate()[0] for process in (first, second)] == ["False\n", "True\n"]
    assert (tmp_path / "builds").read_text() == "x"


def test_keys_tell_lists_of_parts_apart():
    assert key_of(["a", "bc"]) == key_of(["a", "bc"])
    assert (
        len({key_of(parts) for parts in (["a", "bc"], ["ab", "c"], ["abc"], ["bc", "a"], ["a", "bc", ""])})
        == 5
    )


def test_a_cache_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^simulator cache \(LOOMWORK_CACHE\) must be a writable folder"):
        BuildCache(tmp_path / "file").get("key", make_file)


def test_the_environment_moves_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOMWORK_CACHE", str(tmp_path))
    assert BuildCache().directory == tmp_path
    monkeypatch.delenv("LOOMWORK_CACHE")
    assert BuildCache().directory == Path("build/sim-cache").absolute()
