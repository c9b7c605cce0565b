"""Launch folders of `loomwork launch`: one kernel call as files, and the places of its tensors."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np

from .errors import InputError
from .tensors import Tensor, read_tensor

LAUNCH_FORMAT, RUN_FORMAT = "loomwork-launch-1", "loomwork-run-1"
MANIFEST, PLACES, RESULTS = "launch.json", "tensors.npz", "results"
#: Ports of this name lead to the host's memory.
_HOST_PORT = "host"


@dataclass(frozen=True)
class Scalar:
    """A number in a register of 32 bits, at a byte offset."""

    name: str
    offset: int
    value: int


@dataclass(frozen=True)
class Pointer:
    """A buffer, and the byte offset of the register of 64 bits for its address."""

    name: str
    offset: int
    host: bool  #: Whether the buffer lies in the host's memory.
    size_bytes: int  #: 0 for none.
    given: bool  #: Whether the folder has its content.
    output: bool
    #: (byte offset in the content, name of the buffer whose address is added there)
    links: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Folder:
    """A launch folder."""

    path: str
    kernel: str
    config_hash: str
    arguments: tuple[Any, ...]  #: `Scalar` or `Pointer`, in the order of the call.
    counters: Mapping[str, int]  #: Byte offset of each counter of 64 bits.
    tensors: tuple[Tensor, ...]

    @property
    def pointers(self) -> tuple[Pointer, ...]:
        """Arguments that are buffers."""
        return tuple(entry for entry in self.arguments if isinstance(entry, Pointer))

    def content(self, pointer: Pointer) -> np.ndarray:
        """Read the bytes of a buffer before the call, uint8; links count from their buffers' beginnings."""
        return np.fromfile(_buffer_path(self.path, pointer.name), np.uint8)


def read_folder(path: Any) -> Folder:
    """Read a launch folder.

    Raises `InputError` when a file is missing or damaged.
    """
    path = os.fspath(path)
    name = os.path.join(path, MANIFEST)
    try:
        with open(name, encoding="utf-8") as file:
            launch = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError("launch folder", path, f"one of `loomwork launch` ({error})") from error
    found = launch.get("format") if isinstance(launch, dict) else None
    if found != LAUNCH_FORMAT:
        raise InputError(f"format of {name}", found, LAUNCH_FORMAT)
    try:
        folder = Folder(
            path=path,
            kernel=launch["kernel"],
            config_hash=launch["config_hash"],
            arguments=tuple(_argument(entry) for entry in launch["arguments"]),
            counters={**launch["counters"]},
            tensors=_tensors(path, launch["tensors"]),
        )
    except (KeyError, TypeError) as error:
        problem = f"{MANIFEST}: {type(error).__name__} {error}"
        legal = f"whole, and made by this version of Loomwork ({problem})"
        raise InputError("launch folder", path, legal) from error
    for pointer in folder.pointers:
        if pointer.given:
            _check_size(path, pointer)
    return folder


def _argument(entry: Any) -> Any:
    name, offset = entry["name"], entry["offset"]
    if entry["kind"] == "scalar":
        return Scalar(name=name, offset=offset, value=entry["value"])
    return Pointer(
        name=name,
        offset=offset,
        host=entry["port"].startswith(_HOST_PORT),
        size_bytes=entry["size_bytes"],
        given=entry["given"],
        output=entry["output"],
        links=tuple((link["offset"], link["argument"]) for link in entry["links"]),
    )


def _tensors(path: str, entries: Any) -> tuple[Tensor, ...]:
    if not entries:
        return ()
    name = os.path.join(path, PLACES)
    try:
        with np.load(name, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError("places of tensors", name, f"whole; make the launch again ({error})") from error
    return tuple(read_tensor(entry, arrays, f"{n}.") for n, entry in enumerate(entries))


def _check_size(path: str, pointer: Pointer) -> None:
    name = _buffer_path(path, pointer.name)
    try:
        size = os.path.getsize(name)
    except OSError as error:
        raise InputError("buffer file", name, f"readable ({error.strerror})") from error
    if size != pointer.size_bytes:
        raise InputError(f"bytes of {name}", size, str(pointer.size_bytes))


def _buffer_path(path: str, name: str) -> str:
    return os.path.join(path, "buffers", name + ".bin")


def read_package(path: Any) -> dict[str, Any]:
    """Read ``meta.json`` of a package; raises `InputError` when it is missing or damaged."""
    name = os.path.join(os.fspath(path), "meta.json")
    try:
        with open(name, encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError, TypeError) as error:
        raise InputError("package", os.fspath(path), f"one of `loomwork verilog` ({error})") from error


def check_package(folder: Folder, meta: Mapping[str, Any]) -> None:
    """Raise `InputError` unless a launch is one for the kernel of a package: equal configuration and
    registers.
    """
    own = f"{folder.kernel} of configuration {folder.config_hash}"
    wanted = f"{meta['kernel']} of configuration {meta['config_hash']}"
    if own != wanted:
        raise InputError(f"launch {folder.path}", own, f"one for {wanted}")
    for what, found, legal in (
        ("arguments", {entry.name: entry.offset for entry in folder.arguments}, meta["arguments"]),
        ("counters", folder.counters, meta["counters"]),
    ):
        registers = {entry["name"]: entry["offset"] for entry in legal}
        if {**found} != registers:
            name = os.path.join(folder.path, MANIFEST)
            raise InputError(f"{what} of {name}", ", ".join(found), ", ".join(registers))


def check_image(image: str, meta: Mapping[str, Any]) -> None:
    """Raise `InputError` where ``meta.json`` beside an image, which ``make`` left there, has another
    configuration than that of the package.
    """
    directory = os.path.dirname(image)
    if not os.path.exists(os.path.join(directory, "meta.json")):
        return
    found, own = read_package(directory).get("config_hash"), meta["config_hash"]
    if found != own:
        legal = f"{own}, that of the package (make builds the image again)"
        raise InputError(f"configuration of {image}", found, legal)


def discard_results(path: str) -> None:
    """Remove the results of an earlier run."""
    shutil.rmtree(os.path.join(path, RESULTS), ignore_errors=True)


def save_results(
    folder: Folder,
    results: Mapping[str, np.ndarray],
    counters: Mapping[str, int] | None,
    hardware: Mapping[str, Any],
) -> None:
    """Write bytes by argument, counters and the hardware into the folder, whole or not at all."""
    fresh, target = os.path.join(folder.path, ".results"), os.path.join(folder.path, RESULTS)
    shutil.rmtree(fresh, ignore_errors=True)
    os.mkdir(fresh)
    for name, data in results.items():
        data.tofile(os.path.join(fresh, name + ".bin"))
    record = {
        "format": RUN_FORMAT,
        "config_hash": folder.config_hash,
        "counters": counters,
        "hardware": hardware,
    }
    with open(os.path.join(fresh, "run.json"), "w", encoding="utf-8") as file:
        json.dump(record, file, indent=2)
    discard_results(folder.path)
    os.rename(fresh, target)
