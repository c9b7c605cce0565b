"""``loomwork compare attention``: lengths of sequences one by one, every co-simulation kept at once."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hw.attention
import hw.lib
import sim.memory
from hw.attention.config import MAX_KEYS, AttentionConfig
from hw.attention.driver.workload import AttentionWorkload
from hw.attention.engine import AttentionEngine
from hw.board import Board, load_board
from hw.config import check_fits, config_dict, config_hash, load_config
from hw.energy.launch import predicted_microjoules
from hw.errors import InputError, check_range
from hw.registry import find_engine
from sim.compare.rows import RowTask
from sim.compare.runner import listed_numbers
from sim.compare.simulated import CoSimulation
from sim.engines.attention.baselines.work import Cost, Machine
from sim.engines.attention.compare.compare import AttentionComparison, AttentionRow, AttentionSetting
from sim.engines.attention.compare.page import COMPARISON
from sim.host.digest import key_of, source_digest
from sim.host.paths import check_directory
from sim.host.progress import ProgressLine

#: Most heads of a comparison: a launch counts them in 32 bits, memory and patience in fewer.
_MOST_HEADS = 1024


def run_compare(
    sizes: str,
    board_name: str,
    config_path: Path | None,
    heads: int,
    measure_up_to: int,
    output: Path,
    seed: int,
    *,
    simulate: Callable[[int], CoSimulation] | None = None,
) -> bool:
    """Compare the engine with published schedules: write files and a page, print tables, and say whether
    every co-simulation gave the golden model's bits.

    A co-simulation of the same engine, board and input is reused; see `Comparing.run`. ``simulate`` measures
    a length; by default the engine's gates do, on random numbers. Raises `InputError` before any work, for a
    wrong option.
    """
    check_directory("--output", output)
    lengths = parse_sizes(sizes)
    check_range("--heads", heads, 1, _MOST_HEADS)
    check_range("--measure-up-to", measure_up_to, 0, MAX_KEYS)
    engine, board = find_engine("attention"), load_board(board_name)
    config: AttentionConfig = load_config(engine, config_path, board)
    check_fits(engine, config, board)
    setting = make_setting(config, board, heads)
    measure = simulate or partial(_co_simulated, config, board, heads, seed, output)
    # A co-simulation follows from the gateware, the memory model and its input.
    code = source_digest(hw.attention, hw.lib, sim.memory)
    followed = [code, config_hash("attention", config, board), str(heads), str(seed)]
    keys = {tokens: key_of([*followed, str(tokens)]) for tokens in lengths}
    predicted = {}
    with ProgressLine("Predicting") as activity:
        for tokens in lengths:
            activity.update(f"{tokens:,} tokens")
            predicted[tokens] = _predicted(setting, config, board, tokens)

    def compared(known: Mapping[str, CoSimulation]) -> AttentionComparison:
        return AttentionComparison(
            setting,
            tuple(
                AttentionRow(tokens=tokens, predicted=predicted[tokens], measured=known.get(keys[tokens]))
                for tokens in lengths
            ),
        )

    def task(tokens: int) -> RowTask[CoSimulation]:
        return RowTask(key=keys[tokens], title=f"{tokens:,} tokens", make=lambda progress: measure(tokens))

    tasks = [task(tokens) for tokens in lengths if tokens <= measure_up_to]
    return COMPARISON.run(output, tasks, compared).exact


def parse_sizes(text: str) -> list[int]:
    """Turn numbers with commas between into numbers, in increasing order.

    Raises `InputError` for a number that is not from 1 to `MAX_KEYS`, or given twice.
    """
    sizes = listed_numbers("--sizes", text, f"numbers of tokens from 1 to {MAX_KEYS}", MAX_KEYS)
    if not sizes[0]:
        raise InputError("--sizes", text, f"numbers of tokens from 1 to {MAX_KEYS} with commas between")
    return sizes


def make_setting(config: AttentionConfig, board: Board, heads: int) -> AttentionSetting:
    """Return the setting of all rows. Published schedules get the engine's multipliers, its on-chip memory
    for operands and running results, and the board's realistic bandwidth.
    """
    caches = 2 * config.streams * config.cached_keys * config.lanes
    tile = config.rows * config.max_head_dim * (1 + config.streams * config.output_bits // 8)
    machine = Machine(
        macs=2 * config.rows * config.lanes * config.streams,
        on_chip_bytes=caches + tile,
        bytes_per_cycle=board.memory.channels * board.channel_bytes_per_cycle,
    )
    return AttentionSetting(
        board=board.name,
        clock_mhz=board.clock_mhz,
        config=config_dict(config),
        heads=heads,
        size=config.lanes,
        output_bytes=config.result_bits // 8,
        machine=machine,
    )


def _predicted(setting: AttentionSetting, config: AttentionConfig, board: Board, tokens: int) -> Cost:
    workload = AttentionWorkload(
        heads=setting.heads,
        queries=(tokens,),
        keys=(tokens,),
        query_size=setting.size,
        value_size=setting.size,
    )
    engine = AttentionEngine()
    prediction = engine.predict(workload, config, board)
    return Cost(
        cycles=prediction.cycles_total,
        moved_bytes=prediction.moved_bytes,
        microjoules=predicted_microjoules(engine, config, board, prediction),
    )


def _co_simulated(
    config: AttentionConfig, board: Board, heads: int, seed: int, output: Path, tokens: int
) -> CoSimulation:
    """Run the engine's gates on random queries, keys and values."""
    from sim.run.run import run

    tensors = random_tensors(config, heads, tokens, seed)
    result = run("attention", config, board, tensors, directory=output / f"run-{tokens}", seed=seed)
    return CoSimulation.of(result.report)


def random_tensors(config: AttentionConfig, heads: int, tokens: int, seed: int) -> dict[str, Any]:
    """Return normally distributed queries, keys and values whose logits have a standard deviation of 1."""
    rng = np.random.default_rng([seed, heads, tokens])
    return {name: rng.normal(size=(heads, tokens, config.lanes)).astype(np.float32) for name in "qkv"}
