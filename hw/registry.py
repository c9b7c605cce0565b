"""The one list of engines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hw.errors import InputError

if TYPE_CHECKING:
    from hw.engine import Engine

#: Engine name -> "module:class".  Loaded on use, so that one engine's trouble is not every command's.
ENGINES: dict[str, str] = {
    "attention": "hw.attention.engine:AttentionEngine",
    "conv": "hw.conv.engine:ConvEngine",
    "oram": "hw.oram.engine:OramEngine",
    "scheduler": "hw.scheduler.engine:SchedulerEngine",
}


def simulation_side(name: str) -> str:
    """Return the package of an engine's simulation side: `sim.engines.X` for `hw.X`, else the engine's own.

    Its module ``adapter`` has the engine's ``ADAPTER``; a module ``commands``, if there is one, adds to the
    command line.
    """
    package = ENGINES[name].split(":")[0].rpartition(".")[0]
    return f"sim.engines.{package[3:]}" if package.startswith("hw.") else package


def find_engine(name: str) -> Engine[Any, Any]:
    """Return the engine called ``name``.

    Raises
    ------
    InputError
        When there is no such engine; the message lists those there are.
    """
    if name not in ENGINES:
        raise InputError("engine", name, "one of " + ", ".join(sorted(ENGINES)))
    module, attribute = ENGINES[name].split(":")
    engine: Engine[Any, Any] = getattr(import_module(module), attribute)()
    return engine
