"""From a model's file to a build folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hw.board import Board, load_board
from hw.board.files import board_names, find_board
from hw.config import check_fits, load_config
from hw.errors import InputError
from hw.network.compile.compile import Compiled, compile_network
from hw.network.compile.form import WORD_BYTES
from hw.network.config import MOST_BYTES, NetworkConfig
from hw.network.graph.network import Network
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.transformer.network import read_tokens
from hw.network.graph.transformer.reader import takes_tokens
from hw.network.program.demand import check_demand
from hw.registry import find_engine
from hw.scheduler.plan.options import OrderChoice
from hw.scheduler.planner.watch import Watch
from sim.engines.network.build_folder import Build, write_build
from sim.engines.network.token_inputs import check_lengths
from sim.plans.watched import watched_work

#: Seconds of the search for a plan that only shows that there is one.
_PROBE_SECONDS = 2.0


def compile_for(
    model: Path,
    board_name: str,
    directory: Path,
    *,
    config_file: Path | None = None,
    scratchpad_bytes: int | None = None,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    tokens: Sequence[int] = (),
) -> tuple[Build, bool]:
    """Compile a model for a board's kernel, write the folder, and return whether the user stopped the search.

    ``tokens``: of each sentence, for a model on tokens.

    Raises `InputError` before any work for a configuration that does not fit the board, a scratchpad beyond
    the kernel's, and a model with operators that are not supported.  A model beyond the kernel's limits by
    its operators alone is refused, with the operator's name, before a plan is searched.
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
        check_lengths(tokens, on_tokens=takes_tokens(model))
        if tokens:
            network = read_tokens(model, tokens)
        else:
            network = read_network(model, dimensions=dimensions, shapes=shapes)
        compile_into = partial(compile_on, network, config, board, watch=watch)
        try:
            return compile_into(scratchpad_bytes=size)
        except InputError as error:
            if error.field != "scratchpad":
                raise
            watch.stage("a scratchpad that would do")
            raise InputError("scratchpad_bytes", size, _sufficient(compile_into, size)) from error

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


def compile_on(
    network: Network,
    config: NetworkConfig,
    board: Board,
    *,
    scratchpad_bytes: int | None = None,
    **options: Any,
) -> Compiled:
    """Compile a network for a kernel; see `compile_network`.

    Raises `InputError` before a plan is searched where no plan makes a program within the kernel's limits.
    """
    check_demand(network, config)
    return compile_network(
        network,
        scratchpad_bytes=config.scratchpad_bytes if scratchpad_bytes is None else scratchpad_bytes,
        columns=config.columns,
        lanes=config.lanes,
        lines=config.matrix.lines,
        board=board,
        **options,
    )


def _sufficient(compile_into: Callable[..., Compiled], size: int) -> str:
    """Return the least power of two that a network can be planned for, and the boards that have it."""
    enough = 1 << size.bit_length()
    while enough <= MOST_BYTES:
        try:
            # Whether a plan exists does not depend on the order of operators.
            compile_into(
                scratchpad_bytes=enough, order=OrderChoice.DEFAULT, watch=Watch(within_s=_PROBE_SECONDS)
            )
        except InputError:
            enough *= 2
        else:
            boards = [name for name in board_names() if _scratchpad_of(name) >= enough]
            having = f", as by default on {', '.join(boards)}" if boards else ""
            return f"at least {enough} for this network{having}"
    return f"more than {MOST_BYTES} for this network: no kernel has so much"


def _scratchpad_of(board_name: str) -> int:
    """Return the bytes of a board's default scratchpad; 0 for a board without a default kernel."""
    engine, board = find_engine("network"), load_board(board_name)
    try:
        config: NetworkConfig = engine.default_config(board)
        check_fits(engine, config, board)
    except InputError:
        return 0
    return config.scratchpad_bytes
