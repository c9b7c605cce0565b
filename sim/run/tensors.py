"""The user's tensor files, ``.npz`` archives: reading runs no code from them, writing replaces them whole."""

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
#: Exceptions of NumPy and Python for a damaged archive; the last two for a shape too large for any memory.
_DAMAGED = (
    *(OSError, ValueError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(OverflowError, MemoryError),
)


def load_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read all tensors of an ``.npz`` archive.

    Raises `InputError` when the file is missing, empty, no such archive, or larger than `MAX_UNPACKED_BYTES`,
    or when it holds Python objects, text, NaN or infinity.
    """
    check_readable("input file", path)
    archive = "an .npz archive of tensors"
    try:
        with zipfile.ZipFile(path) as container:
            unpacked = sum(member.file_size for member in container.infolist())
        if unpacked > MAX_UNPACKED_BYTES:
            raise InputError(f"bytes in {path}", unpacked, f"at most {MAX_UNPACKED_BYTES}")
        # Pickled objects could run code, so they are refused.
        with np.load(path, allow_pickle=False) as loaded:
            tensors = {name: loaded[name] for name in loaded.files}
    except InputError:
        raise
    except _DAMAGED as error:
        raise InputError("input file", str(path), archive) from error
    if not tensors:
        raise InputError("input file", str(path), f"{archive}, and it is empty")
    for name, tensor in tensors.items():
        if not isinstance(tensor, np.ndarray) or tensor.dtype.kind not in "fiub":
            kind = str(getattr(tensor, "dtype", type(tensor).__name__))
            raise InputError(f"dtype of {name}", kind, "a number type")
        if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise InputError(f"tensor {name}", "NaN or infinity", "finite everywhere")
    return tensors


def save_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write tensors as an ``.npz`` archive; see `sim.host.files.write_bytes`."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(tensors))
    write_bytes(path, buffer.getvalue())


def save_results(path: Path, results: Mapping[str, NDArray[Any]], golden: Mapping[str, NDArray[Any]]) -> None:
    """Write results and the golden integers: ``golden_int`` of a single output, else ``golden_NAME_int``."""
    if len(golden) == 1:
        named = {"golden_int": next(iter(golden.values()))}
    else:
        named = {f"golden_{name}_int": tensor for name, tensor in golden.items()}
    save_tensors(path, {**results, **named})
