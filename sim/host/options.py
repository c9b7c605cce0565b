"""Options of the ``loomwork`` command that engines' own commands share."""

from pathlib import Path
from typing import Annotated

import typer

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
