"""Options and checks that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hw.errors import InputError
from hw.registry import ENGINES

if TYPE_CHECKING:
    from hw.board import Board
    from hw.engine import Engine
    from sim.run.run import Target

#: Exit statuses: outputs differ from the golden model; the user can mend it; Ctrl-C; SIGTERM.
EXIT_MISMATCH, EXIT_USER, EXIT_INTERRUPT, EXIT_TERMINATED = 1, 2, 130, 143

EngineOption = Annotated[str, typer.Option("--engine", help="Engine name; see `loomwork engines`.")]

MemoryOption = Annotated[
    Literal["model", "fast", "jitter"], typer.Option("--memory", help="Memory behaviour.")
]

ResultsOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Results to write, .npz; of operations .csv.")
]
ReportOption = Annotated[Path | None, typer.Option("--report", help="Report of the run, .json.")]
LaunchArgument = Annotated[Path, typer.Argument(help="Launch folder, as `loomwork launch` writes it.")]
TargetArgument = Annotated[
    str, typer.Argument(metavar="ENGINE", help="Engine name, or a build folder of `loomwork compile`.")
]
EngineArgument = Annotated[str, typer.Argument(help="Engine name; see `loomwork engines`.")]

DEFAULT_BOARD = "u55c"
DEFAULT_ENGINE = next(iter(ENGINES))


def exit_unless(passed: bool) -> None:
    """End with `EXIT_MISMATCH` where a verdict is bad."""
    if not passed:
        raise typer.Exit(EXIT_MISMATCH)


def refuse_given(ctx: typer.Context, *options: str, legal: str) -> None:
    """Raise `InputError` for the first of the options that was given."""
    for option in options:
        source = ctx.get_parameter_source(option)
        if source is not None and source.name != "DEFAULT":
            raise InputError(f"--{option}", str(ctx.params[option]), legal)


def writable(path: Path | None) -> Path | None:
    """Check an output path before any work."""
    from sim.host.paths import check_writable

    check_writable("--output", path)
    return path


def setup(
    engine_name: str, board_name: str, config_path: Path | None, *written: tuple[str, Path | None]
) -> tuple[Engine[Any, Any], Board, Any]:
    """Find engine and board, and load the configuration.

    Raises `InputError` when the engine does not fit, or a file to be ``written`` would replace another.
    """
    from hw.board import load_board
    from hw.board.files import find_board
    from hw.config import check_fits, load_config
    from hw.registry import find_engine
    from sim.host.paths import check_distinct

    engine = find_engine(engine_name)
    check_distinct(("--config", config_path), ("--board", find_board(board_name)), *written)
    board = load_board(board_name)
    config = load_config(engine, config_path, board)
    check_fits(engine, config, board)
    return engine, board, config


def target(
    engine_name: str, board_name: str, config_path: Path | None, *written: tuple[str, Path | None]
) -> Target:
    """Load engine, board and configuration for a command that simulates."""
    from sim.run.run import Target

    engine, board, config = setup(engine_name, board_name, config_path, *written)
    return Target(engine=engine, config=config, board=board)
