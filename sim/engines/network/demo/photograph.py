"""A photograph through open_nsfw, beside the float model's results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hw.board import Board
from hw.launch import Tensors
from hw.network.compile.compile import Compiled, compile_network
from hw.network.config import NetworkConfig
from hw.network.graph.network import Network
from hw.network.graph.onnx_reader import read_network
from hw.scheduler.plan.documents import plan_to_json
from sim.engines.network.layers_page import render_layers
from sim.engines.network.nsfw import (
    CALIBRATION,
    CLASSES,
    FEATURES,
    INPUT,
    LOGITS,
    SHARES,
    exact_outputs,
    network_input,
    quantized_model,
)
from sim.host.files import write_text
from sim.plans.page import render_plan
from sim.run.adapter import Results
from sim.run.result import RunResult

#: The launch's name, and its photograph.
LAUNCH, PHOTOGRAPH = "photograph", "astronaut"
TITLE = f"open_nsfw, 53 convolutions in int8, on a photograph; {len(CALIBRATION)} others calibrate it"

#: As `sim.run.adapter.Demo.documents`.
Documents = Mapping[str, tuple[str, Callable[[Results, Path], None]]]


@functools.cache
def network() -> Network:
    """Return open_nsfw in int8."""
    return read_network(quantized_model(), name="open_nsfw")


@functools.cache
def compiled(network: Callable[[], Network], config: NetworkConfig) -> Compiled:
    """Return a network's plan and commands, as the adapter makes them."""
    return compile_network(
        network(),
        scratchpad_bytes=config.scratchpad_bytes,
        columns=config.columns,
        lanes=config.lanes,
        lines=config.matrix.lines,
    )


def documents_of(
    launch: str, network: Callable[[], Network], config: NetworkConfig, board: Board
) -> Documents:
    """Return the pages of a launch's layers and of its plan, by file."""

    def layers(results: Results, path: Path) -> None:
        done = results[launch]
        render_layers(done.job.program, config, board, path, measured=done.report)

    def plan(results: Results, path: Path) -> None:
        render_plan(compiled(network, config).plan, path)

    def data(results: Results, path: Path) -> None:
        write_text(path, plan_to_json(compiled(network, config).plan))

    return {
        f"{launch}-layers.html": (f"Layers of the {launch}: cycles, bounds, roofline", layers),
        f"{launch}-plan.html": (f"Plan of the {launch}: addresses over time, steps, certificate", plan),
        f"{launch}-plan.json": (f"Plan of the {launch} as data", data),
    }


def tensors(model: str) -> Tensors:
    """Return the network and the photograph."""
    return {model: np.array(network(), object), INPUT: network_input(PHOTOGRAPH)}


def conclude(done: RunResult, board: Board) -> Sequence[str]:
    """Put the RTL's results beside the float model's."""
    exact = exact_outputs(PHOTOGRAPH)
    cycles = done.report.cycles.cycles_total
    outputs = {name: np.asarray(array, np.float64) for name, array in done.outputs.items() if name in exact}
    noise = decibels(exact[FEATURES], outputs[FEATURES])
    rate = board.clock_mhz * 1e6 / cycles
    lines = [
        f"Photograph: {cycles:,} cycles, {rate:,.0f} images a second, one after the other.",
        f"Features of the last layer against the float model's: {noise:.1f} dB of signal to noise.",
    ]
    for name, what in ((LOGITS, "logit"), (SHARES, "share")):
        found, wanted = (each[name].reshape(-1) for each in (outputs, exact))
        shown = ", ".join(
            f"{title} {mine:.3f} ({theirs:.3f})"
            for title, mine, theirs in zip(CLASSES, found, wanted, strict=True)
        )
        lines.append(f"{what.capitalize()} of the RTL (of the float model): {shown}.")
    return lines


def decibels(exact: np.ndarray, found: np.ndarray) -> float:
    """Return the signal to noise of a tensor, in decibels."""
    wanted = exact.reshape(-1).astype(np.float64)
    error = found.reshape(-1) - wanted
    return float(10 * np.log10((wanted**2).sum() / (error**2).sum()))
