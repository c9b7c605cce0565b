"""One engine's part of the demo, kept where its simulation takes minutes."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

import hw
from hw.board import Board
from hw.config import config_hash
from hw.registry import simulation_side
from sim.build.simulator import verilator
from sim.host.digest import key_of, source_digest
from sim.host.files import write_bytes
from sim.report.report import Report

#: Name of the file that keeps a part, in its folder.
_KEPT_NAME = "kept.json"


@dataclass(frozen=True, kw_only=True)
class DemoPart:
    """The content of one engine's part of the demo's page."""

    #: ``engine``, ``title``: the engine's name, and the source of its tensors.
    engine: str
    title: str
    outcome: Sequence[str]  #: Lines that its demo concludes with.
    #: Addresses of pictures by their titles, see `sim.report.pictures.embedded`.
    pictures: Mapping[str, str]
    reports: Sequence[Report]  #: Of all launches.
    made: Mapping[str, str]  #: Title of each file, by its path within the demo's directory.
    note: str = ""  #: Says so where the part was kept and nothing was simulated.

    @property
    def bit_exact(self) -> bool:
        """Whether all launches were."""
        return all(report.bit_exact for report in self.reports)


@dataclass(frozen=True)
class _Kept:
    key: str
    part: DemoPart


_KEPT = TypeAdapter(_Kept)


def part_key(engine: str, config: object, board: Board) -> str:
    """Return a key of everything a part depends on: sources, configuration, board, packages, Verilator."""
    sources = source_digest(hw, importlib.import_module(simulation_side(engine).partition(".")[0]))
    installed = (f"{package.name} {package.version}" for package in distributions())
    return key_of(
        [sources, config_hash(engine, config, board), str(verilator().version), *sorted({*installed})]
    )


def keep(part: DemoPart, key: str, root: Path) -> None:
    """Keep a part for `find_part` if every launch was exact; a wrong one must be simulated again."""
    if part.bit_exact:
        write_bytes(root / part.engine / _KEPT_NAME, _KEPT.dump_json(_Kept(key, part)))


def find_part(engine: str, key: str, root: Path) -> DemoPart | None:
    """Return the kept part; None where its key differs or one of its files is missing."""
    file = root / engine / _KEPT_NAME
    try:
        kept = _KEPT.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
    if kept.key != key or not all((root / path).exists() for path in kept.part.made):
        return None
    note = f"Not simulated again: nothing it follows from has changed; without {file} it will be."
    return replace(kept.part, note=note)
