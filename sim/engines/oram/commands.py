"""The oblivious map's commands of ``loomwork``; see `sim.cli.main`."""

from pathlib import Path
from typing import Annotated

import typer

from sim.host.options import BoardOption, ConfigOption, DirectoryOption, SeedOption


def register(app: typer.Typer, compare: typer.Typer) -> None:
    """Add the commands."""
    compare.command("oram")(compare_oram)


def compare_oram(
    log_n: Annotated[
        str, typer.Option("--log-n", help="Binary logarithms of numbers of keys; with commas between.")
    ] = "16,18,20,22,24,26,28,30",
    values: Annotated[str, typer.Option(help="Bytes of a value; with commas between.")] = "8,64,384",
    board: BoardOption = "u55c",
    config: ConfigOption = None,
    measure: Annotated[
        str,
        typer.Option(help="Maps of 2^8 keys whose gates are simulated: one-skip, one-always, both-skip ..."),
    ] = "",
    output: DirectoryOption = Path("build/compare-oram"),
    seed: SeedOption = 0,
) -> None:
    """Compare the oblivious map with BOLT, Path ORAM and a hash table: host traffic, cycles and HBM."""
    from sim.engines.oram.compare.suite import run_compare

    if not run_compare(log_n, values, board, config, measure, output, seed):
        raise typer.Exit(1)
