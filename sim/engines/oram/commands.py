"""The oblivious map's commands of ``loomwork``; see `sim.cli.main`."""

from pathlib import Path
from typing import Annotated

import typer

from sim.host.options import BoardOption, ConfigOption, DirectoryOption, SeedOption

_LOG_NS, _VALUES = "16,18,20,22,24,26,28,30", "8,64,384"
_SEVERAL = "; with commas between, or the option again."


def register(app: typer.Typer, compare: typer.Typer) -> None:
    """Add the commands."""
    compare.command("oram")(compare_oram)


def compare_oram(
    log_n: Annotated[
        list[str] | None,
        typer.Option("--log-n", help=f"Binary logarithms of numbers of keys{_SEVERAL}", show_default=_LOG_NS),
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option(help=f"Bytes of a value{_SEVERAL}", show_default=_VALUES)
    ] = None,
    board: BoardOption = "u55c",
    config: ConfigOption = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="Maps of 2^8 keys whose gates are simulated: one-skip, one-always, both-skip ..."),
    ] = None,
    output: DirectoryOption = Path("build/compare-oram"),
    seed: SeedOption = 0,
) -> None:
    """Compare the oblivious map with BOLT, Path ORAM and a hash table: host traffic, cycles and HBM."""
    from sim.engines.oram.compare.suite import run_compare

    sizes, widths, measured = map(",".join, (log_n or [_LOG_NS], values or [_VALUES], measure or []))
    if not run_compare(sizes, widths, board, config, measured, output, seed):
        raise typer.Exit(1)
