"""What each way to run a network on the kernel costs: predicted, or simulated on its gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from hw.board import Board
from hw.energy.launch import predicted_microjoules
from hw.network.compile.compile import Compiled
from hw.network.config import NetworkConfig
from hw.network.graph.network import Network
from hw.network.predict import predict
from hw.network.program.lower import program_of
from hw.network.program.program import NetworkProgram
from hw.prediction import Prediction
from hw.registry import find_engine
from sim.compare.simulated import CoSimulation
from sim.engines.network.adapter import BUILD
from sim.engines.network.build_folder import Build
from sim.engines.network.compare.compare import (
    BARRIERS,
    LAYERS,
    TURN,
    WHOLE,
    Cost,
    Launch,
    NetworkRow,
    Split,
)
from sim.engines.network.compare.layerwise import layers
from sim.engines.network.compare.split import ENGINE, Heads, counted, heads_of, link_of
from sim.engines.network.compare.ways import attentions, in_turn, overlapping, parts
from sim.engines.network.compiling import compile_on
from sim.engines.network.programs import program_for
from sim.run.run import run

#: From a compiled network to a program.
Way = Callable[[Compiled, NetworkConfig], NetworkProgram]


def _overlapping(compiled: Compiled, config: NetworkConfig) -> NetworkProgram:
    return overlapping(program_of(compiled), config)


def _barriers(compiled: Compiled, config: NetworkConfig) -> NetworkProgram:
    return program_of(compiled)


def _in_turn(compiled: Compiled, config: NetworkConfig) -> NetworkProgram:
    return in_turn(program_of(compiled), config)


def ways(network: Network) -> Mapping[str, Way]:
    """Return the ways to run a network in one launch, by the method."""
    if not attentions(network):
        return {WHOLE: program_for}
    return {WHOLE: program_for, TURN: _in_turn, BARRIERS: _barriers}


def network_row(
    network: Network,
    config: NetworkConfig,
    board: Board,
    progress: Callable[[str], None],
    *,
    tokens: tuple[int, ...] = (),
) -> NetworkRow:
    """Predict a network as one program, each of its layers as a program of its own, and its other ways."""
    compiled = compile_on(network, config, board)
    found = {name: predict(way(compiled, config), config, board) for name, way in ways(network).items()}
    cycles = moved = launches = 0
    microjoules = 0.0
    for layer in layers(network):
        progress(layer.name)
        alone = predict(program_of(compile_on(layer, config, board)), config, board)
        launches += 1
        cycles += alone.cycles_total
        moved += alone.moved_bytes
        microjoules += predicted_microjoules(find_engine("network"), config, board, alone)
    return NetworkRow(
        name=network.name,
        tokens=tokens,
        macs=network.macs,
        compulsory_bytes=found[WHOLE].compulsory_bytes,
        launches=launches,
        ways={name: _cost(each, config, board) for name, each in found.items()}
        | {LAYERS: Cost(cycles=cycles, moved_bytes=moved, microjoules=microjoules)},
        split=_split(network, config, board) if attentions(network) else None,
    )


def _split(network: Network, config: NetworkConfig, board: Board) -> Split | None:
    """Predict the launches of a network split at its attentions; None without a host's link."""
    shapes, between = heads_of(network), parts(network)
    link = link_of(shapes, len(between) + len(shapes), board)
    if link is None:
        return None
    launches = []
    for part in between:
        program = _overlapping(compile_on(part, config, board), config)
        cost = _cost(predict(program, config, board), config, board)
        launches.append(Launch(name=part.name, attention=False, count=1, predicted=cost))
    for name, (shape, count) in counted(shapes).items():
        cycles, moved = shape.predicted(board)
        cost = Cost(cycles=cycles, moved_bytes=moved)
        launches.append(Launch(name=name, attention=True, count=count, predicted=cost))
    return Split(launches=tuple(launches), link=link, multipliers=shapes[0].multipliers(board))


def _cost(found: Prediction, config: NetworkConfig, board: Board) -> Cost:
    return Cost(
        cycles=found.cycles_total,
        moved_bytes=found.moved_bytes,
        microjoules=predicted_microjoules(find_engine("network"), config, board, found),
    )


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A co-simulation."""

    name: str  #: Of the method, or of the launch.
    make: Callable[[Callable[[str], None]], CoSimulation]


def simulations(network: Network, config: NetworkConfig, board: Board, output: Path) -> Iterator[Simulation]:
    """Yield all co-simulations of a network; ``output``: folder for their logs."""

    def of(name: str, whole: Network, way: Way) -> Simulation:
        def make(progress: Callable[[str], None]) -> CoSimulation:
            compiled = compile_on(whole, config, board)
            build = Build.of(compiled, way(compiled, config), config, board)
            tensors = {BUILD: np.array(build, object)}
            folder = output / f"run-{network.name}-{_plain(name)}"
            return CoSimulation.of(run("network", config, board, tensors, directory=folder).report)

        return Simulation(name=name, make=make)

    for name, way in ways(network).items():
        yield of(name, network, way)
    if not attentions(network) or board.host is None:
        return
    for part in parts(network):
        yield of(part.name, part, _overlapping)
    for name, (shape, _) in counted(heads_of(network)).items():
        yield Simulation(name=name, make=partial(_attention, shape, board, output))


def _attention(shape: Heads, board: Board, output: Path, progress: Callable[[str], None]) -> CoSimulation:
    """Simulate a launch of the attention engine on drawn integers."""
    folder = output / f"run-{_plain(shape.name)}"
    result = run(ENGINE, shape.config(board), board, shape.tensors(0), directory=folder)
    return CoSimulation.of(result.report)


def _plain(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name)
