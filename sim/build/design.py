"""The design of an engine or core, generated once for each configuration and state of the generator."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import hw
from hw.board import Board
from hw.config import config_hash
from hw.design import Design
from hw.engine import Engine
from hw.errors import InputError
from sim.build.cache import BuildCache
from sim.host.digest import key_of, source_digest
from sim.host.progress import ProgressLine

if TYPE_CHECKING:
    from hw.cores import CoreDesign, CoreKind

#: Environment variable: ``cells`` simulates the very text of the package, a DSP48E2 a multiplier.
MULTIPLIERS_VARIABLE = "LOOMWORK_MULTIPLIERS"
_MODELS, _CELLS = "models", "cells"
_DESIGN = "design.pickle"


def kernel_design(
    engine: Engine[Any, Any],
    config: Any,
    board: Board,
    *,
    sources: bool = False,
    control_only: bool = False,
    models: bool = False,
) -> Design:
    """Return the design of an engine (`hw.verilog.generate`).

    ``sources``: with source lines of Python. ``control_only``: without data cells. ``models``: with models of
    multipliers. The design is generated anew only when configuration, board, the text of any file in ``hw``
    or of an engine outside of it, or Amaranth have changed.
    """
    kind = f"design{' with sources' * sources}{' of control' * control_only}{' of models' * models}"
    sources_of = [hw, *_own_packages(engine)]
    key = key_of(
        [kind, config_hash(engine.name, config, board), source_digest(*sources_of), version("amaranth")]
    )

    def generate_into(folder: Path) -> None:
        from hw.verilog import generate

        with ProgressLine(f"Generating {engine.name} for {board.name}"):
            design = generate(
                engine, config, board, sources=sources, control_only=control_only, models=models
            )
        (folder / _DESIGN).write_bytes(pickle.dumps(design))

    entry, _ = BuildCache("designs").get(key, generate_into)
    design: Design = pickle.loads((entry / _DESIGN).read_bytes())
    # Another checkout with the same text may have generated it, and be gone.
    return replace(design, templates=engine.templates)


def core_design(kind: CoreKind, config: Any, *, name: str | None = None) -> CoreDesign:
    """Return the stand-alone module of a core (`hw.cores.generate_core`), generated once like a kernel."""
    plain = json.dumps(kind.plain(config), sort_keys=True)
    key = key_of(["core", kind.name, plain, str(name), source_digest(hw), version("amaranth")])

    def generate_into(folder: Path) -> None:
        from hw.cores import generate_core

        with ProgressLine(f"Generating the core {kind.name}"):
            design = generate_core(kind, config, name=name)
        (folder / _DESIGN).write_bytes(pickle.dumps(design))

    entry, _ = BuildCache("designs").get(key, generate_into)
    found: CoreDesign = pickle.loads((entry / _DESIGN).read_bytes())
    return found


def simulated_design(
    engine: Engine[Any, Any], config: Any, board: Board, *, control_only: bool = False, packaged: bool = False
) -> Design:
    """Return the design that is simulated: with models of the engine's multipliers where it has any.

    ``packaged`` or `MULTIPLIERS_VARIABLE` asks for the text of the package instead.

    Raises `InputError` when the variable has another value than ``models`` or ``cells``.
    """
    chosen = os.environ.get(MULTIPLIERS_VARIABLE, _MODELS)
    if chosen not in (_MODELS, _CELLS):
        raise InputError(MULTIPLIERS_VARIABLE, chosen, f"{_MODELS} or {_CELLS}")
    models = engine.modelled and not control_only and not packaged and chosen == _MODELS
    return kernel_design(engine, config, board, control_only=control_only, models=models)


def _own_packages(engine: Engine[Any, Any]) -> tuple[ModuleType, ...]:
    """Return the package of an engine that is none of ``hw``."""
    package = type(engine).__module__.rpartition(".")[0]
    return () if package.split(".")[0] == hw.__name__ or not package else (import_module(package),)
