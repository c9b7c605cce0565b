"""The engines: those of this package, and those of the project in the current folder."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hw.errors import InputError

if TYPE_CHECKING:
    from hw.engine import Engine

#: Engine name -> "module:class", in the order of the demo: the simulator of the next engine is built while
#: one runs, the longest to build during the longest run.
#: Loaded on use: an import error of one engine stays its own.
ENGINES: dict[str, str] = {
    "attention": "hw.attention.engine:AttentionEngine",
    "conv": "hw.conv.engine:ConvEngine",
    "oram": "hw.oram.engine:OramEngine",
    "network": "hw.network.engine:NetworkEngine",
    "scheduler": "hw.scheduler.engine:SchedulerEngine",
}


def known_engines() -> dict[str, str]:
    """Return `ENGINES` and the project's own.

    A project declares ``NAME = "module:class"`` in the table ``[tool.loomwork.engines]`` of its
    ``pyproject.toml``, the nearest one in the current folder or above; its modules are imported from there.
    """
    return _project()[1] | ENGINES


def simulation_side(name: str) -> str:
    """Return the package of an engine's simulation side: `sim.engines.X` for `hw.X`, else the engine's own.

    Its module ``adapter`` has the engine's ``ADAPTER``. An optional module ``commands`` adds commands, unless
    the engine is a project's own.
    """
    package = _module_and_class(name)[0].rpartition(".")[0]
    return f"sim.engines.{package[3:]}" if package.startswith("hw.") else package


def find_engine(name: str) -> Engine[Any, Any]:
    """Return the engine called ``name``.

    Raises `InputError` with the list of engines for another name, or when a project's engine cannot be
    imported.
    """
    module, attribute = _module_and_class(name)
    engine: Engine[Any, Any] = getattr(import_module(module), attribute)()
    return engine


def _module_and_class(name: str) -> tuple[str, str]:
    if name in ENGINES:
        path = ENGINES[name]
    else:
        folder, engines = _project()
        if name not in engines:
            raise InputError("engine", name, "one of " + ", ".join(sorted(engines | ENGINES)))
        path = engines[name]
        if str(folder) not in sys.path:
            # Last: no folder of the project takes the place of ours, here or in a process beside this one.
            sys.path.append(str(folder))
    module, _, attribute = path.partition(":")
    return module, attribute


def _project() -> tuple[Path, dict[str, str]]:
    """Return the folder of the nearest ``pyproject.toml``, and the engines it declares."""
    import tomllib

    here = Path.cwd()
    for folder in (here, *here.parents):
        path = folder / "pyproject.toml"
        if not path.is_file():
            continue
        try:
            engines = tomllib.loads(path.read_text()).get("tool", {}).get("loomwork", {}).get("engines", {})
        except (ValueError, OSError) as error:
            raise InputError("project", str(path), f"TOML ({error})") from error
        for name, place in engines.items():
            if not isinstance(place, str) or place.count(":") != 1 or not place.rpartition(":")[2]:
                raise InputError(f"tool.loomwork.engines.{name}", place, "module:class", where=str(path))
        return folder, engines
    return here, {}
