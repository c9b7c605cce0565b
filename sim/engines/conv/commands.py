"""The convolution engine's part of the ``loomwork`` command; see `sim.cli.main`."""

from pathlib import Path
from typing import Annotated

import typer

from sim.host.options import BoardOption, ConfigOption, DirectoryOption, SeedOption


def register(app: typer.Typer, compare: typer.Typer) -> None:
    """Add the commands."""
    compare.command("conv")(compare_conv)


def compare_conv(
    board: BoardOption = "u55c",
    config: ConfigOption = None,
    measure: Annotated[
        str, typer.Option(help="Works that the gates of a 16 x 16 engine are simulated for: config-c ...")
    ] = "",
    output: DirectoryOption = Path("build/compare-conv"),
    seed: SeedOption = 0,
) -> None:
    """Compare the convolution engine with gathering and a schedule like CoDeNet's: cycles, bytes, MACs."""
    from sim.engines.conv.compare.suite import run_compare

    if not run_compare(board, config, measure, output, seed):
        raise typer.Exit(1)
