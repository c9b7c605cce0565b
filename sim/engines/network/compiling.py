"""From a model's file to a build folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hw.board import load_board
from hw.board.files import find_board
from hw.config import check_fits, load_config
from hw.errors import InputError
from hw.network.compile.compile import Compiled, compile_network
from hw.network.compile.form import WORD_BYTES
from hw.network.config import NetworkConfig
from hw.network.graph.onnx_reader import read_network
from hw.registry import find_engine
from hw.scheduler.planner.watch import Watch
from sim.engines.network.build_folder import Build, write_build
from sim.engines.network.costs import weight_bytes_per_cycle
from sim.plans.watched import watched_work


def compile_for(
    model: Path,
    board_name: str,
    directory: Path,
    *,
    config_file: Path | None = None,
    scratchpad_bytes: int | None = None,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[Build, bool]:
    """Compile a model for a board's kernel, write the folder, and return whether the user stopped the search.

    Raises `InputError` before any work for a configuration that does not fit the board, a scratchpad beyond
    the kernel's, and a model with operators that are not supported.
    """
    engine, board = find_engine("network"), load_board(board_name)
    config: NetworkConfig = load_config(engine, config_file, board)
    check_fits(engine, config, board)
    size = config.scratchpad_bytes if scratchpad_bytes is None else scratchpad_bytes
    if size % WORD_BYTES or size > config.scratchpad_bytes:
        legal = f"a multiple of {WORD_BYTES}, at most the kernel's {config.scratchpad_bytes}"
        raise InputError("--scratchpad-bytes", size, legal)

    def compiled(watch: Watch) -> Compiled:
        watch.stage("reading the model")
        network = read_network(model, dimensions=dimensions, shapes=shapes)
        return compile_network(
            network,
            scratchpad_bytes=size,
            columns=config.columns,
            lanes=config.lanes,
            weight_bytes_per_cycle=int(weight_bytes_per_cycle(config, board)),
            board=board,
            watch=watch,
        )

    found, interrupted, _ = watched_work(f"Compiling {model.stem}", compiled)
    made = write_build(
        directory,
        found,
        config,
        board,
        model=model,
        board_file=find_board(board_name),
        dimensions=dimensions,
        shapes=shapes,
    )
    return made, interrupted
