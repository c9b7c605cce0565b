"""``loomwork compare oram``: every co-simulation kept at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import hw.lib
import hw.oram
import sim.engines.oram
import sim.memory
from hw.board import Board, load_board
from hw.config import config_hash, load_config
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.engine import OramEngine
from hw.oram.model.link import Link
from sim.compare.files import DATA_NAME
from sim.compare.rows import Task, make_rows, read_rows, write_document
from sim.compare.table import show
from sim.engines.oram.compare.compare import (
    COMPARE_FORMAT,
    METHODS,
    OURS,
    Comparison,
    Figures,
    figures_of,
    oram_tables,
    variant,
)
from sim.engines.oram.compare.measure import Measured, measure, measured_config, measured_of
from sim.engines.oram.compare.page import write_comparison
from sim.host.digest import key_of, source_digest
from sim.host.paths import check_directory
from sim.host.progress import Activity


def run_compare(
    log_ns: str,
    values: str,
    board_name: str,
    config_path: Path | None,
    measured: str,
    output: Path,
    seed: int,
    *,
    simulate: Callable[[str], Measured] | None = None,
) -> bool:
    """Compare the map with others: write files and a page, print tables, and say whether every co-simulation
    gave the golden model's bits.

    ``measured`` names maps of ours that are co-simulated small; such figures are written at once, and those
    that stand in the file already and follow from the same are taken over.  ``simulate`` measures one by its
    method; by default its gates do.  Raises `InputError` before any work, for a wrong option.
    """
    check_directory("--output", output)
    wanted = named(measured)
    sizes = [(v, n) for v in numbers("--values", values) for n in numbers("--log-n", log_ns)]
    board = load_board(board_name)
    Link(board, used_bytes=0)
    config: OramConfig = load_config(OramEngine(), config_path, board)
    points = [(variant(config, method, n, v), method) for v, n in sizes for method in METHODS]
    simulated = simulate or partial(_co_simulated, board, seed, output)
    data = output / DATA_NAME
    known = read_rows(data, COMPARE_FORMAT, measured_of)
    code = source_digest(hw.oram, hw.lib, sim.engines.oram, sim.memory)
    keys = {
        method: key_of([code, config_hash("oram", measured_config(shape), board), str(seed)])
        for method, shape in OURS.items()
    }
    figures = _figures(points, board)

    def compared() -> Comparison:
        found = {method: known[key] for method, key in keys.items() if key in known}
        return Comparison(board, config, figures, found)

    def task(method: str) -> Task[Measured]:
        return Task(key=keys[method], title=method, make=lambda progress: simulated(method))

    def keep() -> None:
        write_document(data, COMPARE_FORMAT, compared().document(known))

    make_rows("Measuring", [task(method) for method in wanted], known, keep)
    comparison = compared()
    show(oram_tables(comparison), write_comparison(comparison, output, known))
    return comparison.exact


def _figures(points: list[tuple[OramConfig, str]], board: Board) -> tuple[Figures, ...]:
    found = []
    with Activity("Comparing") as activity:
        for number, (config, method) in enumerate(points, 1):
            activity.update(f"{number} of {len(points)}, {method}, 2^{config.log_n} keys")
            found.append(figures_of(config, board, method))
    return tuple(found)


def numbers(option: str, text: str) -> list[int]:
    """Turn numbers with commas between into numbers, in increasing order.

    Raises `InputError` for what is no number, or given twice.
    """
    found = []
    for part in text.split(","):
        word = part.strip()
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            raise InputError(option, part, "whole numbers with commas between")
        if int(word) in found:
            raise InputError(option, part, "given once")
        found.append(int(word))
    return sorted(found)


def named(names: str) -> list[str]:
    """Return maps of ours by their names on the command line with commas between: ``one-skip``.

    Raises `InputError` for a name that there is not.
    """
    by_name = {"-".join(shape): method for method, shape in OURS.items()}
    found = []
    for name in filter(None, names.split(",")):
        if name.strip() not in by_name:
            raise InputError("name of what is measured", name, "one of " + ", ".join(by_name))
        found.append(by_name[name.strip()])
    return found


def _co_simulated(board: Board, seed: int, output: Path, method: str) -> Measured:
    shape = OURS[method]
    return measure(measured_config(shape), board, seed, output / f"run-{'-'.join(shape)}")
