"""Build folders where a command takes an engine's name: the folder says engine, board and configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hw.errors import InputError
from hw.registry import ENGINES, known_engines

if TYPE_CHECKING:
    from sim.run.adapter import BuildFolder
    from sim.run.run import Target


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a command simulates, and the user's files by their options."""

    target: Target
    board_file: Path
    files: Mapping[str, Path]


def engine_of(argument: str) -> str:
    """Return the engine whose build folder an argument names, or the argument itself."""
    found = _build(argument)
    return found[0] if found else argument


def choose(
    ctx: typer.Context,
    argument: str,
    board_name: str,
    config_path: Path | None,
    *written: tuple[str, Path | None],
) -> Choice:
    """Find engine, board and configuration by the command's arguments, or by a build folder.

    Raises `InputError` when they do not fit, or a build folder meets options that it answers itself.
    """
    from hw.board.files import find_board
    from sim.cli.options import refuse_given, target
    from sim.run.run import Target

    files: Mapping[str, Path] = ctx.obj["files"]
    found = _build(argument)
    if found is None and argument != Path(argument).name:
        raise InputError("engine", argument, "an engine's name, or a folder of `loomwork compile`")
    if found is None:
        chosen = target(argument, board_name, config_path, *written)
        return Choice(target=chosen, board_file=find_board(board_name), files=files)
    name, build = found
    refuse_given(ctx, "board", "config", legal=f"left out: {argument} says it")
    chosen = Target.of(name, build.config, build.board)
    return Choice(target=chosen, board_file=build.board_file, files={**files, build.option: Path(argument)})


def _build(argument: str) -> tuple[str, BuildFolder] | None:
    """Return engine and content of a build folder; None for an engine's name and any other path."""
    from sim.run.run import find_adapter

    path = Path(argument)
    if argument in known_engines() or not path.is_dir():
        return None
    adapters = ((name, find_adapter(name)) for name in ENGINES)
    return next(((name, build) for name, adapter in adapters if (build := adapter.find_build(path))), None)
