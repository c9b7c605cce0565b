"""``loomwork boards``, ``engines`` and ``schema``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.options import EngineArgument, writable

if TYPE_CHECKING:
    from hw.board import Board


def boards(
    name: Annotated[str | None, typer.Argument(help="Board name, or a path to a board's .yaml file.")] = None,
) -> None:
    """List the boards, or print one: the source of each of its numbers, and the engines that fit."""
    from hw.board.files import board_names, find_board, load_board
    from hw.board.form import read_facts
    from sim.host.console import print_board, print_boards, print_table

    if name is None:
        print_boards([load_board(known) for known in board_names()])
    else:
        board = load_board(name)
        print_board(board.title, read_facts(find_board(name)))
        print_table("Default of each engine", ("engine", "on this board"), _defaults(board))


def _defaults(board: Board) -> list[tuple[str, str]]:
    """Return a line for each engine: the fullest resource of its default, or why there is none."""
    from hw.board.resources import IN_PRINT
    from hw.config import check_fits
    from hw.errors import InputError
    from hw.registry import find_engine, known_engines

    rows = []
    for name in sorted(known_engines()):
        engine = find_engine(name)
        try:
            config = engine.default_config(board)
            check_fits(engine, config, board)
        except InputError as error:
            rows.append((name, str(error).splitlines()[0]))
            continue
        have = dict(board.user.items())
        shares = {each: need / have[each] for each, need in engine.resources(config, board).items() if need}
        fullest = max(shares, key=lambda each: shares[each])
        rows.append((name, f"fits, with {shares[fullest]:.0%} of the {IN_PRINT[fullest]}"))
    return rows


def engines() -> None:
    """List the engines."""
    from hw.registry import find_engine, known_engines
    from sim.host.console import print_table

    rows = [(name, find_engine(name).summary) for name in sorted(known_engines())]
    print_table("Engines", ("engine", "what it does"), rows)


def schema(
    engine: EngineArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; printed without it.", callback=writable),
    ] = None,
) -> None:
    """Return the JSON Schema of an engine's configuration file, for editors."""
    import json

    from hw.config import config_schema
    from hw.registry import find_engine

    text = json.dumps(config_schema(find_engine(engine)), indent=2) + "\n"
    if output is None:
        typer.echo(text, nl=False)
        return
    from sim.host.files import write_text

    write_text(output, text)
