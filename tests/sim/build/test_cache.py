"""The build cache: once, whole, by one process, whatever happens to the others."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hw.errors import InputError
from sim.build.cache import BuildCache, default_directory
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
print(BuildCache("things", directory).get("key", make, waiting=waiting)[1])
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
    cache = BuildCache("things", tmp_path)
    assert cache.find("key") is None
    path, cached = cache.get("key", make_file)
    assert not cached
    assert cache.get("key", no_make) == (path, True)
    assert cache.find("key") == path


def test_a_build_that_fails_leaves_nothing(tmp_path):
    cache = BuildCache("things", tmp_path)

    def make(folder):
        make_file(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.get("key", make)
    assert not list((tmp_path / "things").iterdir())
    assert not cache.get("key", make_file)[1]


def test_a_killed_build_is_not_taken_for_a_finished_one(tmp_path):
    first = builder(tmp_path)
    wait_for(lambda: (tmp_path / "builds").exists())
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert BuildCache("things", tmp_path).find("key") is None
    assert list(tmp_path.glob("things/key.building-*/first"))
    path, cached = BuildCache("things", tmp_path).get("key", make_file)
    assert not cached
    assert sorted(item.name for item in path.iterdir()) == ["contents.json", "second"]
    assert not list(tmp_path.glob("things/key.building-*"))


def test_of_two_processes_one_builds_and_the_other_waits(tmp_path):
    first = builder(tmp_path)
    wait_for(lambda: (tmp_path / "builds").exists())
    second = builder(tmp_path)
    wait_for(lambda: (tmp_path / "waiting").exists())
    (tmp_path / "go").touch()
    assert [process.communicate()[0] for process in (first, second)] == ["False\n", "True\n"]
    assert (tmp_path / "builds").read_text() == "x"
    assert [path.name for path in (tmp_path / "things").iterdir()] == ["key"], "locks go with their holders"


def test_keys_tell_lists_of_parts_apart():
    assert key_of(["a", "bc"]) == key_of(["a", "bc"])
    assert (
        len({key_of(parts) for parts in (["a", "bc"], ["ab", "c"], ["abc"], ["bc", "a"], ["a", "bc", ""])})
        == 5
    )


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes())),
    "missing": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["contents.json", "program", "second"])
def test_an_entry_with_a_damaged_file_is_made_anew(tmp_path, damage, name):
    cache = BuildCache("things", tmp_path)

    def make(folder):
        make_file(folder)
        (folder / "program").write_text("#!/bin/sh")
        (folder / "program").chmod(0o755)

    path, _ = cache.get("key", make)
    DAMAGES[damage](path / name)
    assert cache.find("key") is None
    assert cache.get("key", make) == (path, False)
    assert cache.get("key", no_make) == (path, True)
    assert (path / "second").read_text() == "whole"


def test_a_program_that_may_not_run_is_damaged(tmp_path):
    cache = BuildCache("things", tmp_path)

    def make(folder):
        (folder / "program").write_text("#!/bin/sh")
        (folder / "program").chmod(0o755)

    path, _ = cache.get("key", make)
    (path / "program").chmod(0o644)
    assert cache.find("key") is None


def test_a_file_in_the_place_of_an_entry_is_replaced(tmp_path):
    cache = BuildCache("things", tmp_path)
    cache.directory.mkdir()
    (cache.directory / "key").write_text("no folder")
    path, cached = cache.get("key", make_file)
    assert (cached, (path / "second").read_text()) == (False, "whole")


def test_what_a_build_raises_reaches_its_caller(tmp_path):
    def make(folder):
        raise FileNotFoundError("of the build's own")

    with pytest.raises(FileNotFoundError, match="of the build's own"):
        BuildCache("things", tmp_path).get("key", make)


def test_a_cache_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        InputError, match=r"^cache \(LOOMWORK_CACHE or XDG_CACHE_HOME\) must be a writable folder"
    ):
        BuildCache("things", tmp_path / "file").get("key", make_file)


def test_the_cache_is_the_users_wherever_the_work_is_done(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOMWORK_CACHE", str(tmp_path))
    assert BuildCache("things").directory == tmp_path / "things"
    monkeypatch.delenv("LOOMWORK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_directory() == tmp_path / "xdg" / "loomwork"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert default_directory() == tmp_path / "home" / ".cache" / "loomwork"
