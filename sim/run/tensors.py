"""The user's tensor files: reading runs no code from them, writing (``.npz``) replaces them whole."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from sim.host.files import write_bytes
from sim.host.paths import check_readable

#: Most bytes of one file's unpacked tensors: far above any job, far below a machine's memory.
MAX_UNPACKED_BYTES = 4 << 30
#: Suffix of the format of that name.
SAFETENSORS = ".safetensors"
_ARCHIVE = "an .npz archive of tensors"
#: Types of that format, and how NumPy reads them.
_TYPES = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"},
    **{"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"},
    **{"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"},
}
#: Exceptions of NumPy and Python for a damaged archive; the last two for a shape too large for any memory.
_DAMAGED = (
    *(OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(OverflowError, MemoryError),
)


def load_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read a user's tensors.

    They are in an ``.npz`` archive, a ``.safetensors`` file, or a folder with ``NAME.npy`` of each.  Elements
    of type BF16 become float32 of the same value.  Other files in a folder are not read.

    Raises `InputError` when the file is missing, empty, of another form, or larger than `MAX_UNPACKED_BYTES`,
    or when it holds Python objects, text, NaN or infinity.
    """
    if path.is_dir():
        tensors, kind = _of_folder(path), "a folder with NAME.npy of each tensor"
    else:
        check_readable("input file", path)
        if path.suffix == SAFETENSORS:
            tensors, kind = _of_safetensors(path), f"a {SAFETENSORS} file of tensors"
        else:
            tensors, kind = _of_archive(path), _ARCHIVE
    if not tensors:
        raise InputError("input file", str(path), f"{kind}, and it is empty")
    for name, tensor in tensors.items():
        if not isinstance(tensor, np.ndarray) or tensor.dtype.kind not in "fiub":
            type_name = str(getattr(tensor, "dtype", type(tensor).__name__))
            raise InputError(f"dtype of {name}", type_name, "a number type")
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise InputError(f"tensor {name}", "NaN or infinity", "finite everywhere")
    return tensors


def as_archive(path: Path) -> Path | bytes:
    """Return a user's tensors as an ``.npz`` archive: the file itself where it is one, else the content."""
    if not path.is_dir() and path.suffix != SAFETENSORS:
        return path
    return _archive(load_tensors(path))


def _check_size(path: Path, count: int) -> None:
    if count > MAX_UNPACKED_BYTES:
        raise InputError(f"bytes in {path}", count, f"at most {MAX_UNPACKED_BYTES}")


def _of_archive(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as container:
            unpacked = sum(member.file_size for member in container.infolist())
        _check_size(path, unpacked)
        # Pickled objects could run code, so they are refused.
        with np.load(path, allow_pickle=False) as loaded:
            return {name: loaded[name] for name in loaded.files}
    except InputError:
        raise
    except _DAMAGED as error:
        others = f", a {SAFETENSORS} file, or a folder with NAME.npy of each"
        raise InputError("input file", str(path), f"{_ARCHIVE}{others} ({error})") from error


def _of_folder(path: Path) -> dict[str, Any]:
    files = sorted(path.glob("*.npy"))
    for file in files:
        check_readable(f"tensor {file.stem}", file)
    _check_size(path, sum(file.stat().st_size for file in files))
    tensors: dict[str, Any] = {}
    for file in files:
        try:
            with file.open("rb") as stream:
                tensors[file.stem] = np.lib.format.read_array(stream, allow_pickle=False)
        except _DAMAGED as error:
            raise InputError(f"tensor {file.stem}", str(file), "an .npy file of numbers") from error
    return tensors


def _of_safetensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, deserialize

    _check_size(path, path.stat().st_size)
    try:
        entries = deserialize(path.read_bytes())
    except SafetensorError as error:
        raise InputError("input file", str(path), f"a {SAFETENSORS} file of tensors") from error
    tensors: dict[str, Any] = {}
    for name, entry in entries:
        if entry["dtype"] not in _TYPES:
            raise InputError(f"dtype of {name}", entry["dtype"], "one of " + ", ".join(_TYPES))
        stored = np.frombuffer(entry["data"], _TYPES[entry["dtype"]]).reshape(entry["shape"])
        # BF16 is the upper half of a float32.
        bfloat16 = entry["dtype"] == "BF16"
        tensors[name] = (stored.astype("<u4") << 16).view("<f4") if bfloat16 else stored
    return tensors


def save_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write tensors as an ``.npz`` archive; see `sim.host.files.write_bytes`."""
    write_bytes(path, _archive(tensors))


def _archive(tensors: Mapping[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(tensors))
    return buffer.getvalue()


def save_results(path: Path, results: Mapping[str, NDArray[Any]], golden: Mapping[str, NDArray[Any]]) -> None:
    """Write results and the golden integers: ``golden_int`` of a single output, else ``golden_NAME_int``."""
    if len(golden) == 1:
        named = {"golden_int": next(iter(golden.values()))}
    else:
        named = {f"golden_{name}_int": tensor for name, tensor in golden.items()}
    save_tensors(path, {**results, **named})
