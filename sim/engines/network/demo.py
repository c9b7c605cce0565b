"""The network engine's demo: a photograph through open_nsfw, beside the float model's results."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hw.board import Board
from hw.launch import Tensors
from hw.network.compile.compile import Compiled, compile_network
from hw.network.config import NetworkConfig
from hw.network.engine import NetworkEngine
from hw.network.graph.network import Network
from hw.network.graph.onnx_reader import read_network
from hw.network.program.lower import program_of
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
    picture,
    quantized_model,
)
from sim.host.files import write_text
from sim.plans.page import render_plan
from sim.run.adapter import Demo, Results

#: The launch's name, and its photograph.
LAUNCH, PHOTOGRAPH = "photograph", "astronaut"
#: In fewer bytes the program has more commands than the kernel that goes with them.
LEAST_SCRATCHPAD_BYTES = 1 << 20


def network_demo(board: Board, model: str) -> Demo | None:
    """Return open_nsfw on a photograph, calibrated by others, on the board's default kernel.

    ``model``: name of the array that holds the network. None on a board whose kernel is too small.
    """
    config = NetworkEngine().default_config(board)
    if config.scratchpad_bytes < LEAST_SCRATCHPAD_BYTES:
        return None

    def layers(results: Results, path: Path) -> None:
        render_layers(program_of(compiled(config)), config, board, path, measured=results[LAUNCH].report)

    return Demo(
        title=f"open_nsfw, 53 convolutions in int8, on a photograph; {len(CALIBRATION)} others calibrate it",
        config=config,
        launches={LAUNCH: lambda results: tensors(model)},
        conclude=lambda results: conclude(results, board),
        pictures=lambda results: {PHOTOGRAPH: picture(PHOTOGRAPH)},
        documents={
            "layers.html": ("Layers: cycles, bounds, roofline", layers),
            "plan.html": (
                "Plan: addresses over time, steps, certificate",
                lambda results, path: render_plan(compiled(config).plan, path),
            ),
            "plan.json": (
                "Plan as data",
                lambda results, path: write_text(path, plan_to_json(compiled(config).plan)),
            ),
        },
        kept=True,
    )


@functools.cache
def network() -> Network:
    """Return open_nsfw in int8."""
    return read_network(quantized_model(), name="open_nsfw")


@functools.cache
def compiled(config: NetworkConfig) -> Compiled:
    """Return its plan and commands, as the adapter makes them."""
    return compile_network(
        network(),
        scratchpad_bytes=config.scratchpad_bytes,
        columns=config.columns,
        lanes=config.lanes,
        lines=config.matrix.lines,
    )


def tensors(model: str) -> Tensors:
    """Return the network and the photograph."""
    return {model: np.array(network(), object), INPUT: network_input(PHOTOGRAPH)}


def conclude(results: Results, board: Board) -> Sequence[str]:
    """Put the RTL's results beside the float model's."""
    done, exact = results[LAUNCH], exact_outputs(PHOTOGRAPH)
    cycles = done.report.cycles.cycles_total
    outputs = {name: np.asarray(array, np.float64) for name, array in done.outputs.items() if name in exact}
    noise = decibels(exact[FEATURES], outputs[FEATURES])
    lines = [
        f"{cycles:,} cycles: {board.clock_mhz * 1e6 / cycles:,.0f} images a second, one after the other.",
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
