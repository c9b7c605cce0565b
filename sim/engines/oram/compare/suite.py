"""``loomwork compare oram``: every co-simulation kept at once."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import hw.lib
import hw.oram
import sim.engines.oram
import sim.memory
from hw.board import Board, load_board
from hw.config import config_hash, load_config
from hw.oram.config import OramConfig
from hw.oram.engine import OramEngine
from hw.oram.model.link import Link
from sim.compare.rows import RowTask
from sim.compare.runner import listed_names, listed_numbers
from sim.engines.oram.compare.compare import METHODS, OURS, OramComparison, OramFigures, figures_of, variant
from sim.engines.oram.compare.measure import MapSimulation, measure, measured_config
from sim.engines.oram.compare.page import COMPARISON
from sim.host.digest import key_of, source_digest
from sim.host.paths import check_directory
from sim.host.progress import ProgressLine


def run_compare(
    log_ns: str,
    values: str,
    board_name: str,
    config_path: Path | None,
    measured: str,
    output: Path,
    seed: int,
    *,
    simulate: Callable[[str], MapSimulation] | None = None,
) -> bool:
    """Compare the map with others: write files and a page, print tables, and say whether every co-simulation
    gave the golden model's bits.

    ``measured`` names maps of ours of which a small one is co-simulated, and not again for the same key; see
    `Comparing.run`.  ``simulate`` measures one by its method; by default its gates do.  Raises `InputError`
    before any work, for a wrong option.
    """
    check_directory("--output", output)
    wanted = named(measured)
    sizes = [(v, n) for v in numbers("--values", values) for n in numbers("--log-n", log_ns)]
    board = load_board(board_name)
    Link(board, used_bytes=0)
    config: OramConfig = load_config(OramEngine(), config_path, board)
    points = [(variant(config, method, n, v), method) for v, n in sizes for method in METHODS]
    simulated = simulate or partial(_co_simulated, board, seed, output)
    code = source_digest(hw.oram, hw.lib, sim.engines.oram, sim.memory)
    keys = {
        method: key_of([code, config_hash("oram", measured_config(shape), board), str(seed)])
        for method, shape in OURS.items()
    }
    figures = _figures(points, board)

    def compared(known: Mapping[str, MapSimulation]) -> OramComparison:
        found = {method: known[key] for method, key in keys.items() if key in known}
        return OramComparison(board, config, figures, found)

    def task(method: str) -> RowTask[MapSimulation]:
        return RowTask(key=keys[method], title=method, make=lambda progress: simulated(method))

    return COMPARISON.run(output, map(task, wanted), compared).exact


def _figures(points: list[tuple[OramConfig, str]], board: Board) -> tuple[OramFigures, ...]:
    found = []
    with ProgressLine("Comparing") as activity:
        for number, (config, method) in enumerate(points, 1):
            activity.update(f"{number} of {len(points)}, {method}, 2^{config.log_n} keys")
            found.append(figures_of(config, board, method))
    return tuple(found)


def numbers(option: str, text: str) -> list[int]:
    """Return whole numbers of at most 9 digits; see `sim.compare.runner.listed_numbers`."""
    return listed_numbers(option, text, "whole numbers", 10**9 - 1)


def named(names: str) -> list[str]:
    """Return maps of ours by their names on the command line with commas between: ``one-skip``.

    Raises `InputError` for an unknown name.
    """
    return listed_names(names, {"-".join(shape): method for method, shape in OURS.items()})


def _co_simulated(board: Board, seed: int, output: Path, method: str) -> MapSimulation:
    shape = OURS[method]
    return measure(measured_config(shape), board, seed, output / f"run-{'-'.join(shape)}")
