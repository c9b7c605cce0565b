"""The attention engine's part of the ``loomwork`` command; see `sim.cli.main`."""

from pathlib import Path
from typing import Annotated

import typer

from sim.host.options import BoardOption, ConfigOption, DirectoryOption, SeedOption


def register(app: typer.Typer, compare: typer.Typer) -> None:
    """Add the commands."""
    compare.command("attention")(compare_attention)


def compare_attention(
    sizes: Annotated[
        str, typer.Option(help="Tokens of a head, queries as many as keys; with commas between.")
    ] = "256,512,1024,2048,4096,8192,16384,32768,65536",
    board: BoardOption = "u55c",
    config: ConfigOption = None,
    heads: Annotated[int, typer.Option(help="Heads back to back.")] = 12,
    measure_up_to: Annotated[
        int, typer.Option("--measure-up-to", help="Tokens up to which gates are simulated; 0 for none.")
    ] = 2048,
    output: DirectoryOption = Path("build/compare-attention"),
    seed: SeedOption = 0,
) -> None:
    """Compare the attention engine with published schedules: useful MACs and bytes over sequence length."""
    from sim.engines.attention.compare.suite import run_compare

    if not run_compare(sizes, board, config, heads, measure_up_to, output, seed):
        raise typer.Exit(1)
