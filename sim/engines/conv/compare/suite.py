"""``loomwork compare conv``: operations and networks, every co-simulation kept at once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import hw.conv
import hw.lib
import sim.engines.conv
import sim.memory
from hw.board import Board, load_board
from hw.config import check_fits, config_hash, load_config
from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.table import NETWORK
from hw.conv.engine import ConvEngine
from hw.launch import Tensor, Tensors
from sim.compare.rows import RowTask
from sim.compare.simulated import CoSimulation
from sim.engines.conv.baselines.work import Work
from sim.engines.conv.cases import as_network
from sim.engines.conv.compare.compare import ConvComparison, ConvRow, ConvSetting, predicted
from sim.engines.conv.compare.operations import ARRAY, ROWS, named, network_rows, works
from sim.engines.conv.compare.page import COMPARISON
from sim.host.digest import key_of, source_digest
from sim.host.paths import check_directory
from sim.host.progress import ProgressLine


def run_compare(
    board_name: str,
    config_path: Path | None,
    measure: str,
    output: Path,
    seed: int,
    *,
    simulate: Callable[[Work], CoSimulation] | None = None,
) -> bool:
    """Compare the engine with other schedules: write files and a page, print tables, and say whether every
    co-simulation gave the golden model's bits.

    ``measure`` names the works that are co-simulated on the engine with CoDeNet's array, and not again for
    the same key; see `Comparing.run`.  ``simulate`` measures one; by default the engine's gates do.  Raises
    `InputError` before any work, for a wrong option.
    """
    check_directory("--output", output)
    everything = works()
    wanted = named(everything, measure)
    engine, board = ConvEngine(), load_board(board_name)
    config: ConvConfig = load_config(engine, config_path, board)
    check_fits(engine, config, board)
    setting = ConvSetting(board=board, config=config)
    simulated = simulate or partial(_co_simulated, board, seed, output)
    costs = {}
    with ProgressLine("Predicting") as activity:
        for work in everything:
            activity.update(work.name)
            costs[work.name] = predicted(work, setting)
    code = source_digest(hw.conv, hw.lib, sim.engines.conv, sim.memory)
    keys = {
        work.name: key_of([code, config_hash("conv", measured_config(work), board), work.name, str(seed)])
        for work in everything
    }

    def compared(known: Mapping[str, CoSimulation]) -> ConvComparison:
        return ConvComparison(
            setting,
            tuple(
                ConvRow(work=work, predicted=costs[work.name], measured=known.get(keys[work.name]))
                for work in everything
            ),
        )

    def task(work: Work) -> RowTask[CoSimulation]:
        return RowTask(key=keys[work.name], title=work.name, make=lambda progress: simulated(work))

    return COMPARISON.run(output, map(task, wanted), compared).exact


def measured_config(work: Work) -> ConvConfig:
    """Return the engine that a work is measured on: with a small line buffer where samples lie outside."""
    return replace(ARRAY, bank_words=ROWS) if work.outside else ARRAY


def _co_simulated(board: Board, seed: int, output: Path, work: Work) -> CoSimulation:
    """Run the engine's gates on random maps, weights and offsets."""
    from sim.run.run import run

    config = measured_config(work)
    folder = output / f"run-{work.name.replace(' ', '-').replace(',', '')}"
    result = run("conv", config, board, tensors_of(work, config, seed), directory=folder, seed=seed)
    return CoSimulation.of(result.report)


def tensors_of(work: Work, config: ConvConfig, seed: int) -> Tensors:
    """Return the input of a work: a network's table, or random tensors of its one layer."""
    if len(work.layers) > 1:
        rows = network_rows(work.name.removeprefix("config "))
        return {NETWORK: as_network(rows), "seed": np.array(seed)}
    [layer] = work.layers
    [offset] = work.offsets(config.fraction_bits, seed=seed)
    rng = np.random.default_rng(seed)
    top = 127 if config.weight_bits == 8 else 7
    inputs = layer.channels // layer.group
    tensors: dict[str, Tensor] = {
        "x": rng.integers(-128, 128, (layer.channels, layer.rows, layer.columns), dtype=np.int8),
        "w": rng.integers(-top, top + 1, (layer.outputs, inputs, *layer.kernel), dtype=np.int8),
        "group": np.array(layer.group),
        "pads": np.array(layer.pads),
        "accumulators": np.array(0),
    }
    if layer.bound is not None:
        tensors["bound"] = np.array(layer.bound)
    if offset is not None and layer.offsets is Offsets.SQUARE:
        tensors["offset"] = offset.dy[-1]  # of the tap one row down
    elif offset is not None:
        pairs = np.stack([offset.dy, offset.dx], axis=1)
        tensors["offset"] = pairs.reshape(2 * layer.taps, *layer.out_size)
    return tensors
