"""``loomwork cache``: where it is, what goes, and what is damaged."""

import os
import time

import pytest

from sim.build.cache import VARIABLE, BuildCache
from tests.support.command_line import call, refused

DAY = 86_400


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Three builds of two kinds: of 1,000 bytes and used now, of 2,000 and 10 days ago, 3,000 and 40 days."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for kind, key, size, days in (("a", "x", 1000, 0), ("a", "y", 2000, 10), ("b", "z", 3000, 40)):
        path, _ = BuildCache(kind).get(key, lambda folder, size=size: (folder / "f").write_bytes(bytes(size)))
        os.utime(path, (time.time() - days * DAY,) * 2)
    return tmp_path


def left(cache):
    return {path.parent.name for path in cache.glob("*/*/f")}


def test_it_says_where_it_is_and_what_it_has(cache):
    said = call("cache").stdout
    assert str(cache) in said
    rows = {line.split()[0]: line.split()[1] for line in said.splitlines() if len(line.split()) >= 4}
    assert (rows["a"], rows["b"]) == ("2", "1")
    assert "3 " in next(line for line in said.splitlines() if "in all" in line)


def test_an_empty_cache_is_one_too(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    assert "0 B" in call("cache").stdout
    assert "0 of 0" in call("cache", "verify").stdout
    assert "0 of 0" in call("cache", "prune").stdout
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ((), {"x", "y"}),
        (("--older-than", "9d"), {"x"}),
        (("--older-than", "300h"), {"x", "y"}),
        (("--max-size", "3.5kB"), {"x", "y"}),
        (("--max-size", "2kB"), {"x"}),
        (("--max-size", "0kB"), set()),
        (("--older-than", "2w", "--max-size", "1GB"), {"x", "y"}),
    ],
)
def test_what_was_used_longest_ago_goes(cache, words, keys):
    said = call("cache", "prune", *words).stdout
    assert left(cache) == keys
    assert said.startswith(f"removed {3 - len(keys)} of 3 builds, ")
    assert not list(cache.glob("*/*.lock"))


def test_what_is_used_stays(cache):
    BuildCache("b").find("z")
    call("cache", "prune")
    assert left(cache) == {"x", "y", "z"}


def test_damaged_builds_are_found_and_removed(cache):
    (cache / "a" / "y" / "f").write_bytes(b"")
    said = call("cache", "verify").stdout
    assert said == "removed a/y: damaged\n2 of 3 builds are whole\n"
    assert left(cache) == {"x", "z"}


def test_illegal_amounts_are_refused():
    for option, value in (("--older-than", "30"), ("--older-than", "5GB"), ("--max-size", "-1GB")):
        assert refused("cache", "prune", option, value).startswith(
            f"{option} must be a number with a unit of "
        )
