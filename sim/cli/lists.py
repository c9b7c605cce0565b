"""``loomwork boards``, ``engines`` and ``schema``."""

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.options import EngineArgument, writable


def boards(
    name: Annotated[str | None, typer.Argument(help="Board name, or a path to a board's .yaml file.")] = None,
) -> None:
    """List the boards, or print one with the source of each of its numbers."""
    from hw.board.files import board_names, find_board, load_board
    from hw.board.form import read_facts
    from sim.host.console import print_board, print_boards

    if name is None:
        print_boards([load_board(known) for known in board_names()])
    else:
        print_board(load_board(name).title, read_facts(find_board(name)))


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
