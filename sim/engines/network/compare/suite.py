"""``loomwork compare network``: quantized models on the kernel of a board; each network is kept at once."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.board import Board, load_board
from hw.config import check_fits, config_hash, load_config
from hw.errors import InputError
from hw.network.config import NetworkConfig
from hw.network.graph.network import Network
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.transformer.network import read_tokens
from hw.network.graph.transformer.reader import takes_tokens
from hw.registry import find_engine
from sim.compare.rows import RowTask
from sim.compare.runner import listed_names
from sim.compare.simulated import CoSimulation
from sim.engines.network.compare.compare import NetworkComparison, NetworkRow, said
from sim.engines.network.compare.costs import network_row, simulations
from sim.engines.network.compare.page import COMPARISON
from sim.engines.network.compare.signals import Difference, Signal, first_difference, signals
from sim.engines.network.token_inputs import check_lengths
from sim.host.digest import key_of, source_digest
from sim.host.paths import check_directory, check_readable
from sim.run.tensors import load_tensors


@dataclass(frozen=True, kw_only=True, eq=False)
class _Given:
    """A network that is compared, and the key of all that its figures depend on."""

    network: Network
    tokens: tuple[int, ...]
    key: str

    def simulated(self, name: str) -> str:
        """Return the key of a co-simulation."""
        return key_of([self.key, "measured", name])


def run_compare(
    models: Sequence[Path],
    board_name: str,
    config_path: Path | None,
    output: Path,
    *,
    tokens: Sequence[int] = (),
    measure: str = "",
    exact: Path | None = None,
    tensors: Path | None = None,
    reference: Path | None = None,
) -> bool:
    """Compare networks with other ways to run them and with published processors: write files and a page,
    print tables, and say whether no tensor differs from the reference, and no co-simulation from its golden
    model.

    * ``tokens``: of each sentence, for models on tokens.
    * ``measure``: names of networks, with commas between, whose gates are simulated.
    * ``exact``: the float model of the one network, for the error of each tensor on ``tensors``.
    * ``reference``: arrays of its tensors, whose first difference is found.

    Raises `InputError` before any work, for a wrong option.
    """
    check_directory("--output", output)
    _check(models, exact, tensors, reference)
    on_tokens = [takes_tokens(path) for path in models]
    check_lengths(tokens, on_tokens=any(on_tokens))
    if any(on_tokens) and tensors is not None:
        raise InputError("--input", str(tensors), "left out: the model takes tokens")
    engine, board = find_engine("network"), load_board(board_name)
    config: NetworkConfig = load_config(engine, config_path, board)
    check_fits(engine, config, board)
    # Figures depend on the planner, too, and on the ways to run a network.
    code = source_digest(*map(importlib.import_module, ("hw", "sim.engines.network", "sim.memory")))
    followed = [code, config_hash("network", config, board)]

    def given(path: Path, has_tokens: bool) -> _Given:
        lengths = tuple(tokens) if has_tokens else ()
        return _Given(
            network=read_tokens(path, lengths) if has_tokens else read_network(path),
            tokens=lengths,
            key=key_of([*followed, _digest(path), path.stem, str(lengths)]),
        )

    networks = {path.stem: given(path, own) for path, own in zip(models, on_tokens, strict=True)}
    wanted = listed_names(measure, networks)
    found: list[Signal] = []
    difference: Difference | None = None
    if tensors is not None:
        content, inputs = models[0].read_bytes(), load_tensors(tensors)
        network = networks[models[0].stem].network
        if exact is not None:
            found = signals(content, network, exact.read_bytes(), inputs)
        if reference is not None:
            one = {name: array[:1] for name, array in inputs.items()}
            difference = first_difference(content, network, one, load_tensors(reference))

    def compared(known: Mapping[str, NetworkRow | CoSimulation]) -> NetworkComparison:
        rows, measured = [], {}
        for name, each in networks.items():
            if isinstance(row := known.get(each.key), NetworkRow):
                rows.append(row)
                names = {each.simulated(way): way for way in (*row.ways, *_launches(row))}
                seen = {way: known[key] for key, way in names.items() if key in known}
                measured[name] = {way: run for way, run in seen.items() if isinstance(run, CoSimulation)}
        return NetworkComparison(
            board=board,
            config=config,
            rows=rows,
            measured=measured,
            signals=found,
            referenced=reference is not None,
            difference=difference,
        )

    made = COMPARISON.run(output, _tasks(networks, wanted, config, board, output), compared)
    if text := said(made):
        print(text)
    return difference is None and made.exact


def _tasks(
    networks: Mapping[str, _Given],
    wanted: Sequence[_Given],
    config: NetworkConfig,
    board: Board,
    output: Path,
) -> list[RowTask[NetworkRow | CoSimulation]]:
    """Return the predictions of all networks, then the co-simulations of those that are wanted."""

    def predicted(each: _Given) -> RowTask[NetworkRow | CoSimulation]:
        return RowTask(
            key=each.key,
            title=each.network.name,
            make=lambda progress: network_row(each.network, config, board, progress, tokens=each.tokens),
        )

    found = [predicted(each) for each in networks.values()]
    for each in wanted:
        for run in simulations(each.network, config, board, output):
            title = f"{each.network.name}, {run.name}"
            found.append(RowTask(key=each.simulated(run.name), title=title, make=run.make))
    return found


def _launches(row: NetworkRow) -> list[str]:
    return [] if row.split is None else [each.name for each in row.split.launches]


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
