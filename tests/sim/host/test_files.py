"""Where results go: files, and what only looks like them; what was there is lost by nothing that fails."""

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hw.errors import InputError
from sim.host.files import write_bytes
from sim.host.paths import check_directory, check_distinct, check_readable, check_writable
from tests.support.processes import ROOT


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path):
    path = tmp_path / "out"
    write_bytes(path, b"old")
    path.chmod(0o600)
    before = path.stat().st_ino
    write_bytes(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    assert path.stat().st_ino != before
    assert os.listdir(tmp_path) == ["out"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    for name, target in (("link", "real/file"), ("chain", "link"), ("new", "real/other")):
        (tmp_path / name).symlink_to(target)
    (tmp_path / "real" / "file").write_bytes(b"old")
    for name in ("chain", "new"):
        check_writable("--output", tmp_path / name)
        write_bytes(tmp_path / name, name.encode())
        assert (tmp_path / name).is_symlink()
    assert (tmp_path / "real" / "file").read_bytes() == b"chain"
    assert (tmp_path / "real" / "other").read_bytes() == b"new"


def test_a_loop_of_links_is_one_line(tmp_path):
    for name, target in (("a", "b"), ("b", "a"), ("self", "self")):
        (tmp_path / name).symlink_to(target)
    for check in (check_writable, check_directory, check_readable, lambda _, path: write_bytes(path, b"x")):
        for name in ("a", "self"):
            with pytest.raises(InputError, match=r"\(Too many levels of symbolic links\)"):
                check("--output", tmp_path / name)
    assert (tmp_path / "a").is_symlink()


def test_a_directory_and_a_name_too_long_are_refused(tmp_path):
    with pytest.raises(InputError, match="Is a directory"):
        write_bytes(tmp_path, b"x")
    for check in (check_writable, check_directory, check_readable, lambda _, path: write_bytes(path, b"x")):
        with pytest.raises(InputError, match="File name too long"):
            check("--output", tmp_path / ("x" * 300))


def test_devices_are_written_to_and_stay(capfd):
    for name in ("/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        check_writable("--output", Path(name))
        write_bytes(Path(name), b"result\n")
    with pytest.raises(
        InputError, match=r"^output file must be writable \(No space left on device\), not '/dev/full'"
    ):
        write_bytes(Path("/dev/full"), b"result")
    assert capfd.readouterr().out == "result\n" * 3
    for name in ("/dev/null", "/dev/full"):
        assert Path(name).is_char_device()


def test_an_input_is_no_device():
    with pytest.raises(InputError, match="must be a file, and this is a device, not '/dev/zero'"):
        check_readable("--input", Path("/dev/zero"))


def test_a_named_pipe_waits_for_its_reader(tmp_path, capfd):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable("--output", pipe)
    got = []
    reader = threading.Timer(0.3, lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, data := os.urandom(1 << 18))
    reader.join()
    assert got == [data]
    assert capfd.readouterr().err == f"loomwork: waiting for a reader of {pipe}\n"
    assert pipe.is_fifo()


def test_a_disk_without_room_keeps_the_old_file(tmp_path):
    """A limit on the size of files stands for it: both end a write half way."""
    path = tmp_path / "out"
    path.write_bytes(b"old")
    program = (
        "from pathlib import Path\nfrom sim.host.files import write_bytes\nfrom hw.errors import InputError\n"
        f"try: write_bytes(Path({str(path)!r}), bytes(100_000))\n"
        "except InputError as error: print(error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, capture_output=True, text=True, check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )  # fmt: skip
    assert said.stdout == f"output file must be writable (File too large), not '{path}'\n"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_one_file_under_two_names_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    (tmp_path / "link").symlink_to("file")
    os.link(path, tmp_path / "hard")
    for other in ("link", "hard", "./file", f"../{tmp_path.name}/file"):
        with pytest.raises(InputError, match=r"^--output must be another file than --input, not "):
            check_distinct(("--input", path), ("--plan", None), ("--output", tmp_path / other))
    with pytest.raises(InputError, match=r"^--report must be another file than --output"):
        check_distinct(("--output", tmp_path / "new"), ("--report", tmp_path / "x" / ".." / "new"))
    check_distinct(("--output", Path("/dev/null")), ("--report", Path("/dev/null")))
