"""Tensor files: what is not a safe, finite, readable archive of numbers is refused in one line."""

import re
import zipfile

import numpy as np
import pytest

from hw.errors import InputError
from sim.run import tensors
from sim.run.tensors import load_tensors, save_tensors


def refused(path, message):
    with pytest.raises(InputError, match=message) as caught:
        load_tensors(path)
    assert "\n" not in str(caught.value)


def test_what_is_saved_is_loaded(tmp_path):
    path = tmp_path / "t.npz"
    written = {"q": np.arange(6, dtype=np.int8).reshape(2, 3), "scale": np.float64(0.5)}
    save_tensors(path, written)
    loaded = load_tensors(path)
    assert list(loaded) == ["q", "scale"]
    assert loaded["q"].dtype == np.int8
    np.testing.assert_array_equal(loaded["q"], written["q"])
    assert loaded["scale"] == 0.5
    assert list(tmp_path.iterdir()) == [path]


def test_equal_tensors_make_equal_files(tmp_path):
    for name in ("a.npz", "b.npz"):
        save_tensors(tmp_path / name, {"q": np.ones(3)})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_missing_file_or_a_directory_is_refused(tmp_path):
    refused(tmp_path / "none.npz", "input file must be a file that exists, not '.*none.npz'")
    refused(tmp_path, r"input file must be a readable file \(Is a directory\)")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    refused(path, "input file must be an .npz archive of tensors, not '.*t.npz'")


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "t.npz"
    save_tensors(path, {"q": np.arange(1000)})
    whole = bytearray(path.read_bytes())
    whole[300] ^= 0xFF
    path.write_bytes(whole)
    refused(path, "input file must be an .npz archive of tensors")
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "input file must be an .npz archive of tensors")


def test_a_single_array_is_refused(tmp_path):
    path = tmp_path / "t.npz"
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    refused(path, "input file must be an .npz archive of tensors")


def test_python_objects_are_refused_unopened(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, q=np.array([{"a": 1}], dtype=object))
    refused(path, "input file must be an .npz archive of tensors")


def test_text_and_foreign_members_are_refused(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, q=np.array(["a"]))
    refused(path, "dtype of q must be a number type, not '<U1'")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(path, "dtype of readme.txt must be a number type, not 'bytes'")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_by_name(tmp_path, bad):
    path = tmp_path / "t.npz"
    np.savez(path, k=np.zeros(2), q=np.array([1.0, bad], dtype=np.float16))
    refused(path, "tensor q must be finite everywhere, not 'NaN or infinity'")


@pytest.mark.parametrize("extent", ["9" * 40, str(1 << 60)])
def test_a_shape_that_no_memory_holds_is_refused(tmp_path, extent):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({extent},)}}\n".encode()
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    refused(path, "input file must be an .npz archive of tensors")


def test_an_empty_archive_is_refused(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path)
    refused(path, "input file must be an .npz archive of tensors, and it is empty")


def test_an_archive_that_unpacks_to_too_much_is_refused_unopened(tmp_path, monkeypatch):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, q=np.zeros(100_000, dtype=np.int8))
    monkeypatch.setattr(tensors, "MAX_UNPACKED_BYTES", 50_000)
    refused(path, re.escape(f"bytes in {path} must be at most 50000, not 100128"))
