"""``loomwork cache``: the user's kept builds, listed and removed."""

import re
import time
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any

import typer

from hw.errors import InputError

_SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
_BYTES = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

app = typer.Typer(help="The simulators and other builds that are kept for you, whichever folder you work in.")


@app.callback(invoke_without_command=True)
def show(ctx: typer.Context) -> None:
    """Print where it is, how large, and how many builds of each kind it has."""
    if ctx.invoked_subcommand is None:
        from sim.build.upkeep import entries

        _print(entries())


@app.command()
def prune(
    older_than: Annotated[
        str | None, typer.Option("--older-than", help="Remove what was not used for so long: 12h, 30d, 8w.")
    ] = None,
    max_size: Annotated[
        str | None, typer.Option("--max-size", help="Then what was used longest ago, down to this: 5GB.")
    ] = None,
) -> None:
    """Remove builds; without an option those not used for 30 days. They are made again when needed."""
    from sim.build.upkeep import entries, outdated

    if older_than is None and max_size is None:
        older_than = "30d"
    older = _amount("--older-than", older_than, _SECONDS)
    most = _amount("--max-size", max_size, _BYTES)
    found = entries()
    going = outdated(found, time.time(), older_seconds=older, most_bytes=most)
    for entry in going:
        entry.remove()
    print(f"removed {len(going)} of {len(found)} builds, {_sized(going)}")


@app.command()
def verify() -> None:
    """Find damaged builds and remove them; they also mend themselves when they are used."""
    from sim.build.upkeep import entries

    found = entries()
    damaged = [entry for entry in found if not entry.whole]
    for entry in damaged:
        entry.remove()
        print(f"removed {entry.kind}/{entry.key}: damaged")
    print(f"{len(found) - len(damaged)} of {len(found)} builds are whole")


def _print(found: Sequence[Any]) -> None:
    from sim.build.cache import default_directory
    from sim.host.console import print_table

    rows = []
    for kind, of_kind in groupby(found, key=lambda entry: entry.kind):
        several = list(of_kind)
        rows.append((kind, f"{len(several):,}", _sized(several)))
    rows.append(("in all", f"{len(found):,}", _sized(found)))
    print_table(str(default_directory()), ("kind", "builds", "size"), rows)


def _sized(found: Sequence[Any]) -> str:
    from sim.report.text import sized

    return sized(sum(entry.size_bytes for entry in found))


def _amount(option: str, text: str | None, units: Mapping[str, int]) -> int | None:
    """Read a number with a unit; None stays None."""
    if text is None:
        return None
    found = re.fullmatch(rf"(\d{{1,9}}(?:\.\d{{1,9}})?)\s*({'|'.join(units)})", text)
    if found is None:
        raise InputError(option, text, f"a number with a unit of {', '.join(units)}")
    return int(float(found[1]) * units[found[2]])
