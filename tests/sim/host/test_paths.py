"""Paths are tried before the work, and nothing is left behind by trying."""

import io

import pytest

from hw.errors import InputError
from sim.host import paths
from sim.host.paths import check_directory, check_readable, check_writable


def test_an_output_is_tried_before_the_work(tmp_path):
    check_writable("--output", tmp_path / "new.npz")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="--output must be a file, and this is a directory, not "):
        check_writable("--output", tmp_path)
    with pytest.raises(InputError, match=r"--output must be in a directory that exists, not '.*x\.npz'"):
        check_writable("--output", tmp_path / "none" / "x.npz")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--output must be in a directory that exists"):
        check_writable("--output", tmp_path / "file" / "x.npz")


def test_a_directory_nothing_can_be_put_in_is_refused(tmp_path, monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(paths.tempfile, "TemporaryFile", full)
    with pytest.raises(InputError, match=r"--output must be writable \(No space left on device\)"):
        check_writable("--output", tmp_path / "x.npz")


def test_an_unreadable_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "c.yaml"
    path.write_text("")

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(io, "open", denied)
    with pytest.raises(InputError, match=r"--config must be a readable file \(Permission denied\)"):
        check_readable("--config", path)


def test_a_directory_that_could_be_made_is_accepted_and_not_made(tmp_path):
    check_directory("--output", tmp_path / "a" / "b")
    check_directory("--output", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_directory_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match=r"--output must be a directory, and .*/file is a file, not "):
            check_directory("--output", path)
