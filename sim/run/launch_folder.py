"""The launch folder: one kernel call and its results as files, for a card and for the simulator.

======================  =============================================================================
file                    holds
======================  =============================================================================
``launch.json``         the call: `Manifest`
``buffers/NAME.bin``    bytes of the buffer behind pointer NAME, where the manifest says ``given``
``tensors.npz``         places of the tensors' bytes, for the host library
``golden.npz``          the golden model's integers
``expected/NAME.bin``   bytes of the output buffer behind NAME after the call, where it has ``expected_bytes``
``expected/NAME.mask``  255 for each byte of it that is known, 0 for the others
``inputs/``             the user's files
``board.yaml``          the board's file
``results/run.json``    counters and tools of the run: `RunRecord`; written last
``results/NAME.bin``    bytes of every buffer that is read back
======================  =============================================================================

``docs/launch.md`` explains it for authors of host programs.  Run as a module, this one writes the JSON schema
of both documents to ``sim/run/launch.schema.json``::

    python -m sim.run.launch_folder
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from hw.edge import read_json, validate
from hw.errors import InputError
from hw.launch import Buffer, Launch
from sim.host.files import fresh_directory, refused, write_text
from sim.report.sections import Count, Hardware, doc
from sim.run.adapter import FaultyLaunch
from sim.run.expected import Expected
from sim.run.host_call import TensorEntry

LAUNCH_FORMAT: Literal["loomwork-launch-1"] = "loomwork-launch-1"
RUN_FORMAT: Literal["loomwork-run-1"] = "loomwork-run-1"
MANIFEST, GOLDEN, BOARD, RESULTS, RUN = "launch.json", "golden.npz", "board.yaml", "results", "run.json"
EXPECTED, PLACES = "expected", "tensors.npz"
SCHEMA = Path(__file__).with_name("launch.schema.json")
#: Files that `loomwork verify` writes.
REPORT, PAGE = "report.json", "report.html"
_OWN = {MANIFEST, GOLDEN, BOARD, RESULTS, REPORT, PAGE, EXPECTED, PLACES, "inputs", "buffers"}
_FIELD = "launch folder"
_STRICT = ConfigDict(extra="forbid", strict=True)

Bytes = NDArray[np.uint8]
Identifier = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{12}$")]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Scalar:
    """A number the host writes to a register."""

    kind: Literal["scalar"] = "scalar"
    name: Annotated[Identifier, doc("Name in the argument table.")]
    offset: Annotated[Count, doc("Byte offset of its register.")]
    value: Annotated[int, Field(ge=0, lt=1 << 32), doc("The register's 32 bits.")]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class BufferLink:
    """A place in a buffer that receives another buffer's address."""

    offset: Annotated[Count, doc("Where in the buffer a 64-bit number lies, little endian, in bytes.")]
    argument: Annotated[Identifier, doc("The buffer whose address is added to it before the call.")]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Pointer:
    """A buffer whose address the host writes to a register."""

    kind: Literal["pointer"] = "pointer"
    name: Annotated[Identifier, doc("Name in the argument table, and of the buffer's files.")]
    offset: Annotated[Count, doc("Byte offset of its register, 64 bits.")]
    port: Annotated[str, doc("AXI port of the kernel that reaches it.")]
    memory: Annotated[str, doc("Memory of the board behind that port, or the host's.")]
    size_bytes: Annotated[
        Count, doc("Length of the buffer; 0: there is none, and the kernel does not use it.")
    ]
    given: Annotated[
        bool, doc("Whether `buffers` has its bytes before the call; otherwise they may have any value.")
    ]
    output: Annotated[bool, doc("Whether its bytes after the call go to `results`.")]
    links: Annotated[tuple[BufferLink, ...], doc("Addresses of other buffers within it.")] = ()
    expected_bytes: Annotated[
        Count, doc("Number of its bytes after the call that `expected` has, under a mask; 0: no files.")
    ] = 0


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Manifest:
    """One kernel call: ``launch.json``."""

    format: Annotated[Literal["loomwork-launch-1"], doc("Format and its version.")] = LAUNCH_FORMAT
    engine: Annotated[str, doc("Name of the engine.")]
    kernel: Annotated[str, doc("Name of the kernel.")]
    board: Annotated[str, doc("Name of the board.")]
    config: Annotated[dict[str, Any], doc("The engine's configuration, every key.")]
    config_hash: Annotated[
        Digest, doc("Hash of engine, configuration and board: the kernel's must be the same.")
    ]
    seed: Annotated[Count, doc("Seed of everything random in the inputs.")]
    inputs: Annotated[tuple[Identifier, ...], doc("Options of the user's files that are kept.")]
    arguments: Annotated[
        tuple[Annotated[Scalar | Pointer, Field(discriminator="kind")], ...],
        doc("Arguments in the order of the call."),
    ]
    counters: Annotated[dict[Identifier, Count], doc("Byte offset of each counter's register, 64 bits.")] = (
        Field(default_factory=dict)
    )
    tensors: Annotated[tuple[TensorEntry, ...], doc("Tensors that further calls may have others of.")] = ()

    def __post_init__(self) -> None:
        pointers = {entry.name: entry.size_bytes for entry in self.arguments if isinstance(entry, Pointer)}
        for entry in self.arguments:
            for link in entry.links if isinstance(entry, Pointer) else ():
                if not pointers.get(link.argument):
                    raise InputError(f"link of {entry.name}", link.argument, "a buffer of the launch")

    @property
    def pointers(self) -> Iterator[Pointer]:
        """The arguments that point somewhere."""
        return (entry for entry in self.arguments if isinstance(entry, Pointer) and entry.size_bytes)

    @classmethod
    def of(
        cls,
        launch: Launch,
        arguments: Mapping[str, Any],
        expected: Mapping[str, Expected],
        **given: Any,
    ) -> Manifest:
        """Describe a launch; ``arguments`` has offset, port and memory of each, ``given`` the other fields.

        Raises `InputError` for a launch that one host call cannot do.
        """
        if launch.then or FaultyLaunch.of(launch).tampers:
            what = "further calls" if launch.then else "tampers"
            raise InputError(what, "given", "left out: a launch folder is one call by an honest host")
        buffers = {buffer.argument: buffer for buffer in launch.buffers}
        entries: list[Scalar | Pointer] = []
        for name, place in arguments.items():
            if name in launch.scalars:
                value = int(launch.scalars[name]) % (1 << 32)
                entries.append(Scalar(name=name, offset=place["offset"], value=value))
                continue
            buffer = buffers.get(name, Buffer(argument=name, data=None, size_bytes=0))
            entries.append(
                Pointer(
                    name=name,
                    **place,
                    size_bytes=buffer.size_bytes,
                    given=buffer.data is not None,
                    output=buffer.output,
                    links=tuple(BufferLink(offset=at, argument=other) for at, other in buffer.links),
                    expected_bytes=expected[name].known_bytes if name in expected else 0,
                )
            )
        return cls(arguments=tuple(entries), **given)


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class RunRecord:
    """Counters, time and tools of a run: ``results/run.json``."""

    format: Annotated[Literal["loomwork-run-1"], doc("Format and its version.")] = RUN_FORMAT
    config_hash: Annotated[Digest, doc("That of the launch.")]
    counters: Annotated[
        dict[str, Count] | None, doc("The kernel's counters by name; null when they could not be read.")
    ]
    hardware: Annotated[Hardware | None, doc("Of a run on hardware: on which, and how long.")] = None
    simulation: Annotated[
        dict[str, Any] | None, doc("Of a replay: the report's `simulation` without its rate.")
    ] = None
    memory: Annotated[list[dict[str, Any]], doc("Of a replay: the counts of the memory models.")] = Field(
        default_factory=list
    )
    tool_versions: Annotated[dict[str, str], doc("Of a replay: versions of the tools.")] = Field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        if (self.hardware is None) == (self.simulation is None):
            raise InputError("hardware", self.hardware, "given or else simulation, one of both")


MANIFESTS: TypeAdapter[Manifest] = TypeAdapter(Manifest)
RECORDS: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)


def write_launch(
    directory: Path,
    manifest: Manifest,
    launch: Launch,
    files: Mapping[str, Path | bytes],
    golden: bytes,
    expected: Mapping[str, Expected],
) -> None:
    """Write a launch folder, whole or not at all.

    ``files``: files to copy, or contents of files, by their path in the folder.  ``expected``: output buffers
    after the call.

    Raises `InputError` when the directory has other content than an earlier launch, or cannot be written.
    """
    check_replaceable(directory)
    with fresh_directory(_FIELD, directory) as fresh:
        for name, source in files.items():
            (fresh / name).parent.mkdir(exist_ok=True)
            if isinstance(source, bytes):
                (fresh / name).write_bytes(source)
            elif source.is_dir():
                shutil.copytree(source, fresh / name)
            else:
                shutil.copyfile(source, fresh / name)
        (fresh / "buffers").mkdir()
        for buffer in launch.buffers:
            if buffer.data is not None:
                buffer.data.tofile(fresh / "buffers" / f"{buffer.argument}.bin")
        (fresh / GOLDEN).write_bytes(golden)
        (fresh / EXPECTED).mkdir()
        for name, after in expected.items():
            after.content.tofile(fresh / EXPECTED / f"{name}.bin")
            after.mask.tofile(fresh / EXPECTED / f"{name}.mask")
        _dump(fresh / MANIFEST, MANIFESTS, manifest)


def check_replaceable(directory: Path) -> None:
    """Refuse a directory that holds anything but an earlier launch folder, with `InputError`."""
    if not directory.is_dir():
        return
    if any(directory.iterdir()) and not (directory / MANIFEST).is_file():
        raise InputError(_FIELD, str(directory), "new, empty, or a launch folder to replace")
    for name in sorted({path.name for path in directory.iterdir()} - _OWN):
        raise InputError(_FIELD, str(directory / name), "without files of others, which would be replaced")


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of a launch folder.

    Raises `InputError` when it is no launch folder, or of another format.
    """
    if not (directory / MANIFEST).is_file():
        raise InputError(_FIELD, str(directory), f"one that `loomwork launch` wrote, with a {MANIFEST}")
    manifest: Manifest = _load(directory / MANIFEST, MANIFESTS, LAUNCH_FORMAT)
    return manifest


def read_launch(directory: Path) -> Launch:
    """Read a launch folder's call with its buffers.

    Raises `InputError` as `read_manifest`, and when a buffer has the wrong size.
    """
    manifest = read_manifest(directory)
    buffers = tuple(
        Buffer(
            argument=entry.name,
            data=_bytes(directory / "buffers" / f"{entry.name}.bin", entry) if entry.given else None,
            size_bytes=entry.size_bytes,
            output=entry.output,
            links=tuple((link.offset, link.argument) for link in entry.links),
        )
        for entry in manifest.pointers
    )
    return Launch(
        scalars={entry.name: entry.value for entry in manifest.arguments if isinstance(entry, Scalar)},
        buffers=buffers,
        nulls=tuple(
            entry.name for entry in manifest.arguments if isinstance(entry, Pointer) and not entry.size_bytes
        ),
    )


def read_expected(directory: Path, manifest: Manifest) -> dict[str, Expected]:
    """Read the known bytes of the output buffers after the call.

    Raises `InputError` when a file is missing or has the wrong size.
    """
    folder = directory / EXPECTED
    return {
        entry.name: Expected(
            content=_bytes(folder / f"{entry.name}.bin", entry),
            mask=_bytes(folder / f"{entry.name}.mask", entry),
        )
        for entry in manifest.pointers
        if entry.expected_bytes
    }


def write_results(directory: Path, buffers: Mapping[str, Bytes], record: RunRecord) -> None:
    """Write the results of a launch into its folder; they replace earlier ones."""
    with fresh_directory(_FIELD, directory / RESULTS) as fresh:
        for name, content in buffers.items():
            content.tofile(fresh / f"{name}.bin")
        _dump(fresh / RUN, RECORDS, record)


def read_results(directory: Path, manifest: Manifest) -> tuple[dict[str, Bytes], RunRecord]:
    """Read the results of a launch: its buffers by argument, and the record.

    Raises `InputError` when there are none, they are incomplete, or another kernel's.
    """
    path = directory / RESULTS
    if not (path / RUN).is_file():
        legal = f"run before: {path / RUN} comes of host.py of the kernel's package, or of `loomwork replay`"
        raise InputError(_FIELD, str(directory), legal)
    record = _load(path / RUN, RECORDS, RUN_FORMAT)
    if record.config_hash != manifest.config_hash:
        legal = f"{manifest.config_hash}, that of the launch"
        raise InputError(f"config_hash of {path / RUN}", record.config_hash, legal)
    buffers = {
        entry.name: _bytes(path / f"{entry.name}.bin", entry) for entry in manifest.pointers if entry.output
    }
    return buffers, record


def _bytes(path: Path, entry: Pointer) -> Bytes:
    with refused("buffer file", path, "readable"):
        content = np.fromfile(path, np.uint8)
    if content.size != entry.size_bytes:
        raise InputError(f"bytes of {path}", content.size, f"{entry.size_bytes}, as the launch says")
    return content


def _dump(path: Path, adapter: TypeAdapter[Any], value: Any) -> None:
    path.write_text(json.dumps(adapter.dump_python(value, mode="json"), indent=2) + "\n", encoding="utf-8")


def _load(path: Path, adapter: TypeAdapter[Any], version: str) -> Any:
    document = read_json(path)
    found = document.data.get("format") if isinstance(document.data, dict) else None
    if found != version:
        raise InputError(f"format of {path}", found, repr(version))
    return validate(document, adapter)


def schema_text() -> str:
    """Return the text of ``launch.schema.json``: both documents."""
    parts = {"launch.json": MANIFESTS.json_schema(), "results/run.json": RECORDS.json_schema()}
    kinds = {name: kind for part in parts.values() for name, kind in part.pop("$defs").items()}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": kinds,
        "oneOf": [{**part, "title": name} for name, part in parts.items()],
    }
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    write_text(SCHEMA, schema_text())
