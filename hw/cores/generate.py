"""From a core and its configuration to the files of a stand-alone module."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hw.cores.kinds import CoreKind
from hw.cores.stand_alone import StandAlone
from hw.cores.table import ports_json, ports_page
from hw.errors import InputError
from hw.lib.arithmetic.models import models_of
from hw.lib.convert import UltraScalePlus, to_verilog, uncollected
from hw.lib.place import CellPlacer
from hw.package.write import write_files
from hw.verilog import generator_versions, generators_line, joined

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class CoreDesign:
    """A generated stand-alone module."""

    name: str  #: Name of the module.
    verilog: str  #: The module and all below it, one file.
    files: dict[str, str]  #: Text of every file by name; ``meta.json``, which lists the others, is last.


def core_name(kind: CoreKind) -> str:
    """Return the name of a core's module where the user chooses none."""
    return f"loomwork_{kind.name.replace('-', '_')}_core".replace("_dma_core", "_dma")


@uncollected()
def generate_core(kind: CoreKind, config: Any, *, name: str | None = None) -> CoreDesign:
    """Generate the stand-alone module of a core.

    A pure function of its arguments and the versions of the generators.  All module names begin with
    ``name``, so that a design may have several cores.

    Raises `InputError` for a name that is not a lower-case identifier, or a shape that the core does not do.
    """
    name = core_name(kind) if name is None else name
    if not _IDENTIFIER.fullmatch(name):
        raise InputError("name", name, "a lower-case identifier of Verilog")
    platform = UltraScalePlus()
    placer = CellPlacer(platform=platform, prefix=f"{name}_")
    module = StandAlone(kind.make(config, placer))
    top = to_verilog(module, name=name, platform=platform)
    versions = generator_versions()
    plain = kind.plain(config)
    text = json.dumps({"core": kind.name, "config": plain}, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    header = [
        f"{name}: {kind.summary}",
        f"Core {kind.name}, configuration {digest}; ports.md has every port.",
        generators_line(versions),
    ]
    verilog = joined(header, (*placer.cells.values(), top))
    files = {f"{name}.v": verilog}
    files |= {path.name: path.read_text(encoding="utf-8") for path in models_of(verilog)}
    files["ports.md"] = ports_page(name, kind, config, module)
    meta = {
        "core": kind.name,
        "module": name,
        "config": plain,
        "config_hash": digest,
        "versions": versions,
        "ports": ports_json(module),
        "files": [*files, "meta.json"],
    }
    files["meta.json"] = json.dumps(meta, indent=2, ensure_ascii=False) + "\n"
    return CoreDesign(name=name, verilog=verilog, files=files)


def write_core(design: CoreDesign, directory: Path | str) -> tuple[Path, ...]:
    """Write the files of a stand-alone module to ``directory`` and return them.

    Raises `InputError` as `hw.package.write.write_files`.
    """
    return write_files(design.files, directory)
