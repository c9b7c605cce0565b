"""Options of the ``loomwork`` command that engines' own commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hw.errors import InputError

#: Titles under which `loomwork --help` lists the commands, in order.
SIMULATE, PLAN, EXPLORE, HARDWARE, LISTS, MAINTENANCE = PANELS = (
    "Simulate and predict",
    "Plan and compile networks",
    "Explore and compare",
    "Hardware",
    "Boards, engines, configurations",
    "Maintenance",
)

BoardOption = Annotated[str, typer.Option("--board", help="Board name, or a path to a board's .yaml file.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="YAML file of the engine; the board's default without it.")
]
DirectoryOption = Annotated[Path, typer.Option("--output", "-o", help="Directory to write.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of everything random.")]


def parse_dimensions(texts: Sequence[str]) -> dict[str, int]:
    """Parse ``NAME=VALUE`` into numbers by name; `InputError` for another form or a duplicate name."""
    found: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value.isascii() and value.isdigit()):
            raise InputError("--dim", text, "NAME=VALUE with a whole value of at least 0")
        if name in found:
            raise InputError("--dim", text, f"given once for {name}, which is {found[name]} already")
        found[name] = int(value)
    return found
