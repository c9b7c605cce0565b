"""``loomwork compare network``: quantized models on the kernel of a board; each network is kept at once."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hw.board import Board, load_board
from hw.config import check_fits, config_hash, load_config
from hw.errors import InputError
from hw.network.config import NetworkConfig
from hw.network.graph.network import Network
from hw.network.graph.onnx_reader import read_network
from hw.network.predict import predict
from hw.network.program.lower import program_of
from hw.prediction import Prediction
from hw.registry import find_engine
from sim.compare.rows import RowTask
from sim.engines.network.compare.compare import Cost, NetworkComparison, NetworkRow, said
from sim.engines.network.compare.layerwise import layers
from sim.engines.network.compare.page import COMPARISON
from sim.engines.network.compare.signals import Difference, Signal, first_difference, signals
from sim.engines.network.compiling import compile_on
from sim.host.digest import key_of, source_digest
from sim.host.paths import check_directory, check_readable
from sim.run.tensors import load_tensors


def run_compare(
    models: Sequence[Path],
    board_name: str,
    config_path: Path | None,
    output: Path,
    *,
    exact: Path | None = None,
    tensors: Path | None = None,
    reference: Path | None = None,
) -> bool:
    """Compare networks with running them layer by layer and with a published processor: write files and a
    page, print tables, and say whether no tensor differs from the reference.

    * ``exact``: the float model of the one network, for the error of each tensor on ``tensors``.
    * ``reference``: arrays of its tensors, whose first difference is found.

    Raises `InputError` before any work, for a wrong option.
    """
    check_directory("--output", output)
    _check(models, exact, tensors, reference)
    engine, board = find_engine("network"), load_board(board_name)
    config: NetworkConfig = load_config(engine, config_path, board)
    check_fits(engine, config, board)
    networks = [read_network(path) for path in models]
    # Figures depend on the planner, too.
    code = source_digest(importlib.import_module("hw"))
    found: list[Signal] = []
    difference: Difference | None = None
    if tensors is not None:
        content, inputs = models[0].read_bytes(), load_tensors(tensors)
        if exact is not None:
            found = signals(content, networks[0], exact.read_bytes(), inputs)
        if reference is not None:
            one = {name: array[:1] for name, array in inputs.items()}
            difference = first_difference(content, networks[0], one, load_tensors(reference))
    keys = [
        key_of([code, config_hash("network", config, board), _digest(path), path.stem]) for path in models
    ]

    def compared(known: Mapping[str, NetworkRow]) -> NetworkComparison:
        rows = [known[key] for key in keys if key in known]
        return NetworkComparison(
            board=board,
            config=config,
            rows=rows,
            signals=found,
            referenced=reference is not None,
            difference=difference,
        )

    def task(key: str, network: Network) -> RowTask[NetworkRow]:
        return RowTask(
            key=key,
            title=network.name,
            make=lambda progress: network_row(network, config, board, progress),
        )

    made = COMPARISON.run(output, map(task, keys, networks), compared)
    if text := said(made):
        print(text)
    return difference is None


def network_row(
    network: Network, config: NetworkConfig, board: Board, progress: Callable[[str], None]
) -> NetworkRow:
    """Predict a network as one program, and each of its layers as a program of its own."""
    whole, macs = _predicted(network, config, board), network.macs
    cycles = moved = launches = 0
    for layer in layers(network):
        progress(layer.name)
        found = _predicted(layer, config, board)
        launches += 1
        cycles += found.cycles_total
        moved += found.moved_bytes
    return NetworkRow(
        name=network.name,
        macs=macs,
        compulsory_bytes=whole.compulsory_bytes,
        launches=launches,
        whole=Cost(cycles=whole.cycles_total, moved_bytes=whole.moved_bytes),
        layers=Cost(cycles=cycles, moved_bytes=moved),
    )


def _predicted(network: Network, config: NetworkConfig, board: Board) -> Prediction:
    compiled = compile_on(network, config, board)
    return predict(program_of(compiled), config, board)


def _check(models: Sequence[Path], exact: Path | None, tensors: Path | None, reference: Path | None) -> None:
    """Refuse options that do not fit together, and files that cannot be read."""
    asked = [name for name, path in (("--float", exact), ("--reference", reference)) if path is not None]
    if asked and tensors is None:
        raise InputError("--input", "missing", f"a .npz with the model's inputs, for {asked[0]}")
    if tensors is not None and not asked:
        raise InputError("--input", str(tensors), "with --float or --reference")
    if asked and len(models) > 1:
        raise InputError("models", len(models), f"one, with {asked[0]}")
    stems = [path.stem for path in models]
    for path in models:
        check_readable("model", path)
        if stems.count(path.stem) > 1:
            raise InputError("model", str(path), "of a name of its own")
    for name, file in (("--float", exact), ("--input", tensors), ("--reference", reference)):
        if file is not None:
            check_readable(name, file)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
