"""Tensor files: what is not a safe, finite, readable archive of numbers is refused in one line."""

import json
import re
import zipfile

import numpy as np
import pytest
from safetensors.numpy import save_file

from hw.errors import InputError
from sim.run import tensors
from sim.run.tensors import as_archive, load_tensors, save_tensors


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


def test_a_missing_file_or_an_empty_directory_is_refused(tmp_path):
    refused(tmp_path / "none.npz", "input file must be a file that exists, not '.*none.npz'")
    refused(tmp_path, "input file must be a folder with NAME.npy of each tensor, and it is empty")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    refused(
        path,
        "input file must be an .npz archive of tensors, a .safetensors file, or a folder .*, not '.*t.npz'",
    )


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "t.npz"
    save_tensors(path, {"q": np.arange(1000)})
    whole = bytearray(path.read_bytes())
    whole[300] ^= 0xFF
    path.write_bytes(whole)
    refused(path, "input file must be an .npz archive of tensors")
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, r"input file must be an .npz archive of tensors, .* \(File is not a zip file\)")


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


def written(**changes):
    return {"q": np.arange(6, dtype=np.int8).reshape(2, 3), "scale": np.array(0.5), **changes}


def in_folder(path, tensors):
    path.mkdir()
    for name, tensor in tensors.items():
        np.save(path / f"{name}.npy", tensor)


@pytest.mark.parametrize("kind", ["float16", "float64", "int8", "int64", "uint8", "uint32", "bool"])
def test_safetensors_and_folders_are_read_as_archives_are(tmp_path, kind):
    tensors = written(x=np.array([[0, 1], [2, 3]], kind), empty=np.zeros((0, 4), kind))
    np.savez(tmp_path / "t.npz", **tensors)
    save_file(tensors, tmp_path / "t.safetensors")
    in_folder(tmp_path / "t", tensors)
    (tmp_path / "t" / "notes.txt").write_text("not a tensor")
    whole = load_tensors(tmp_path / "t.npz")
    for path in (tmp_path / "t.safetensors", tmp_path / "t"):
        found = load_tensors(path)
        assert found.keys() == whole.keys()
        for name, tensor in whole.items():
            assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
            np.testing.assert_array_equal(found[name], tensor)


def raw_safetensors(path, dtype, shape, data):
    header = json.dumps({"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


def test_bfloat16_becomes_float32_of_the_same_value(tmp_path):
    path = tmp_path / "t.safetensors"
    raw_safetensors(path, "BF16", [2, 2], bytes.fromhex("803f 00c0 ab3e 0000"))
    found = load_tensors(path)["x"]
    assert found.dtype == np.float32
    assert found.tolist() == [[1.0, -2.0], [0.333984375, 0.0]]
    raw_safetensors(path, "BF16", [1], bytes.fromhex("807f"))
    refused(path, "tensor x must be finite everywhere")


def test_other_safetensors_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.safetensors"
    raw_safetensors(path, "F8_E4M3", [2], b"00")
    refused(path, "dtype of x must be one of F64, F32, F16, BF16, .*, not 'F8_E4M3'")
    save_file(written(), path)
    whole = path.read_bytes()
    for content in (b"", b"hello", whole[:-1], whole[:20], b"\xff" * 16):
        path.write_bytes(content)
        refused(path, "input file must be a .safetensors file of tensors, not '.*t.safetensors'")
    save_file({}, path)
    refused(path, "input file must be a .safetensors file of tensors, and it is empty")
    refused(tmp_path / "none.safetensors", "input file must be a file that exists")
    save_file(written(), path)
    monkeypatch.setattr(tensors, "MAX_UNPACKED_BYTES", 50)
    refused(path, re.escape(f"bytes in {path} must be at most 50, not {len(whole)}"))


def test_other_files_in_a_folder_are_refused_by_name(tmp_path, monkeypatch):
    folder = tmp_path / "t"
    in_folder(folder, written())
    monkeypatch.setattr(tensors, "MAX_UNPACKED_BYTES", 50)
    refused(folder, re.escape(f"bytes in {folder} must be at most 50, not "))
    monkeypatch.undo()
    np.save(folder / "objects.npy", np.array([{}], object))
    refused(folder, "tensor objects must be an .npy file of numbers, not '.*objects.npy'")
    (folder / "objects.npy").unlink()
    np.savez(tmp_path / "whole.npz", q=np.ones(2))
    (tmp_path / "whole.npz").rename(folder / "k.npy")
    refused(folder, "tensor k must be an .npy file of numbers")
    np.save(folder / "k.npy", np.array([np.nan]))
    refused(folder, "tensor k must be finite everywhere")
    (folder / "k.npy").write_bytes(b"")
    refused(folder, "tensor k must be an .npy file of numbers")
    np.save(folder / "k.npy", np.array(["a"]))
    refused(folder, "dtype of k must be a number type, not '<U1'")


def test_a_launch_keeps_an_archive(tmp_path):
    save_tensors(tmp_path / "t.npz", written())
    assert as_archive(tmp_path / "t.npz") == tmp_path / "t.npz"
    save_file(written(), tmp_path / "t.safetensors")
    in_folder(tmp_path / "t", written())
    for path in (tmp_path / "t.safetensors", tmp_path / "t"):
        (tmp_path / "kept.npz").write_bytes(as_archive(path))
        assert load_tensors(tmp_path / "kept.npz").keys() == written().keys()
