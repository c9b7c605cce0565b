"""The kinds of file that an engine reads and writes, and the options of commands that name them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hw.errors import InputError
from hw.launch import Tensors
from sim.host.paths import check_readable
from sim.run.tensors import as_archive, load_tensors


@dataclass(frozen=True, kw_only=True)
class InputFile:
    """A kind of file that launches are made of."""

    #: ``plan``: the option ``--plan`` of ``sim`` and ``launch``, the key of a workload in a sweep's file, and
    #: the name of the copy in a launch folder.
    option: str
    suffix: str  #: Of the copy in a launch folder: ``.json``.
    help: str  #: Of the option.
    #: Reads a file, given the configuration and the run's seed; raises `InputError` when it cannot be used.
    read: Callable[[Path, Any, int], Tensors]
    folder: bool = False  #: Whether it is a folder with files.
    or_folder: bool = False  #: Whether a folder may stand in the place of the file.
    #: Returns what a launch folder keeps: a file or folder, or the content of a file.
    kept: Callable[[Path], Path | bytes] = lambda path: path
    #: Names in the file, of tensors or columns, and the meaning of each, for ``--help``.  Neighbours with one
    #: meaning share an entry, with commas between.
    content: Mapping[str, str] = field(default_factory=dict)

    def check(self, field_name: str, path: Path) -> None:
        """Refuse a path that is no file, or folder, of this kind; raises `InputError` under the name."""
        if self.folder and not path.is_dir():
            raise InputError(field_name, str(path), "a folder that exists")
        if not self.folder and not (self.or_folder and path.is_dir()):
            check_readable(field_name, path)

    @property
    def copy_name(self) -> str:
        """Path of the copy in a launch folder."""
        return f"inputs/{self.option}{self.suffix}"


@dataclass(frozen=True, kw_only=True)
class OutputFile:
    """A kind of file that is written after a run."""

    option: str  #: ``labels``: the option ``--labels`` of ``sim``.
    help: str  #: Of the option.
    needs: str  #: Option of the input file without which there is nothing to write.
    write: Callable[[Path, Any], None]  #: Writes a job's file.


TENSOR_FILE = InputFile(
    option="input",
    suffix=".npz",
    help="Tensors: .npz, .safetensors, or a folder with NAME.npy of each; an engine may do without.",
    read=lambda path, config, seed: load_tensors(path),
    or_folder=True,
    kept=as_archive,
)


def tensor_file(content: Mapping[str, str]) -> InputFile:
    """Return `TENSOR_FILE` with the tensors of an engine; see `InputFile.content`."""
    return replace(TENSOR_FILE, content=content)
