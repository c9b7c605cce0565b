"""``loomwork compare attention``: lengths of sequences one by one, every co-simulation kept at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import hw.attention
import hw.lib
import sim.memory
from hw.attention.config import MAX_KEYS, AttentionConfig
from hw.attention.model.predict import predict_launch
from hw.attention.model.shapes import JobShape
from hw.attention.model.traffic import traffic
from hw.board import Board, load_board
from hw.config import check_fits, config_dict, config_hash, load_config
from hw.errors import InputError
from hw.registry import find_engine
from sim.engines.attention.baselines import Cost, Machine
from sim.engines.attention.compare.compare import COMPARE_FORMAT, Comparison, Setting, attention_tables
from sim.engines.attention.compare.page import DATA_NAME, write_comparison
from sim.engines.attention.compare.rows import SCHEDULES, AttentionRow, Measured
from sim.host.console import console
from sim.host.files import write_text
from sim.host.paths import check_directory
from sim.host.progress import Activity

#: Most heads of a comparison: a launch counts them in 32 bits, memory and patience in fewer.
_MOST_HEADS = 1024


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """The options of ``loomwork compare attention``, as given."""

    sizes: str
    board: str
    config: Path | None
    heads: int
    measure_up_to: int
    output: Path
    seed: int


#: Simulates so many tokens.
Simulate = Callable[[int], Measured]


def run_compare(request: CompareRequest, simulate: Simulate | None = None) -> bool:
    """Compare the engine with published schedules; write files and a page, print tables.

    What was simulated is written at once; co-simulations that stand in the file already and follow from the
    same engine, board and input are taken over, so that what was interrupted goes on.

    Parameters
    ----------
    request
        The options.
    simulate
        What measures a length; by default a co-simulation of the engine on random numbers.

    Returns
    -------
    bool
        Whether every co-simulation gave the golden model's bits.

    Raises
    ------
    InputError
        Before any work, for a wrong option.
    """
    check_directory("--output", request.output)
    sizes = parse_sizes(request.sizes)
    _check_range("--heads", request.heads, 1, _MOST_HEADS)
    _check_range("--measure-up-to", request.measure_up_to, 0, MAX_KEYS)
    engine, board = find_engine("attention"), load_board(request.board)
    config: AttentionConfig = load_config(engine, request.config, board)
    check_fits(engine, config, board)
    setting = make_setting(config, board, request.heads)
    if simulate is None:
        simulate = _CoSimulation(config, board, request)
    data = request.output / DATA_NAME
    known = _known(data)
    rows: list[AttentionRow] = []
    with Activity("Comparing") as activity:
        for tokens in sizes:
            key = _key(config, board, request, tokens)
            measured = known.get(key)
            activity.update(f"{tokens:,} tokens")
            row = _row(setting, config, board, tokens, key)
            if measured is None and tokens <= request.measure_up_to:
                activity.update(f"{tokens:,} tokens, {row.predicted.cycles:,.0f} cycles to simulate")
                measured = simulate(tokens)
                known[key] = measured
            rows.append(replace(row, measured=measured))
            # Measurements of a longer run that stand behind this row are not lost by writing it.
            others = {other: found for other, found in known.items() if other not in {r.key for r in rows}}
            write_text(data, Comparison(setting, tuple(rows)).to_json(others))
    comparison = Comparison(setting, tuple(rows))
    written = write_comparison(comparison, request.output, others)
    for table in attention_tables(comparison):
        console().print(table)
    for path in written:
        print(path)
    return comparison.exact


def parse_sizes(text: str) -> list[int]:
    """Turn numbers with commas between into numbers, in increasing order.

    Raises
    ------
    InputError
        For what is no number from 1 to `MAX_KEYS`, or given twice.
    """
    sizes = []
    for part in text.split(","):
        word = part.strip()
        if not (word.isascii() and word.isdigit() and 1 <= int(word) <= MAX_KEYS):
            raise InputError("--sizes", part, f"numbers of tokens from 1 to {MAX_KEYS} with commas between")
        if int(word) in sizes:
            raise InputError("--sizes", part, "given once")
        sizes.append(int(word))
    return sorted(sizes)


def make_setting(config: AttentionConfig, board: Board, heads: int) -> Setting:
    """Give what all rows have in common: published schedules get the engine's multipliers, the memory it has
    on chip for operands and running results, and all of the board's realistic bandwidth.
    """
    caches = 2 * config.streams * config.cached_keys * config.lanes
    tile = config.rows * config.max_head_dim * (1 + config.streams * config.output_bits // 8)
    machine = Machine(
        macs=2 * config.rows * config.lanes * config.streams,
        on_chip_bytes=caches + tile,
        bytes_per_cycle=board.memory.realistic_bytes_per_second / (board.clock_mhz * 1e6),
    )
    return Setting(
        board=board.name,
        clock_mhz=board.clock_mhz,
        config=config_dict(config),
        heads=heads,
        size=config.lanes,
        output_bytes=config.result_bits // 8,
        machine=machine,
    )


def _row(setting: Setting, config: AttentionConfig, board: Board, tokens: int, key: str) -> AttentionRow:
    job = JobShape(
        queries=tokens, keys=tokens, heads=setting.heads, query_size=setting.size, value_size=setting.size
    )
    predicted = Cost(
        cycles=predict_launch(config, board, [job]), moved_bytes=traffic(config, [job]).moved_bytes
    )
    work = setting.work(tokens)
    published = {name: schedule(work, setting.machine) for name, schedule in SCHEDULES.items()}
    return AttentionRow(tokens=tokens, predicted=predicted, measured=None, published=published, key=key)


class _CoSimulation:
    """Runs the engine's gates on random queries, keys and values."""

    def __init__(self, config: AttentionConfig, board: Board, request: CompareRequest) -> None:
        self._config, self._board, self._request = config, board, request

    def __call__(self, tokens: int) -> Measured:
        from sim.run.run import run

        directory = self._request.output / f"run-{tokens}"
        result = run(
            "attention",
            self._config,
            self._board,
            random_tensors(self._config, self._request.heads, tokens, self._request.seed),
            directory=directory,
            seed=self._request.seed,
        )
        report = result.report
        return Measured(
            cycles=report.cycles.cycles_total,
            moved_bytes=report.traffic.useful_bytes,
            exact=result.bit_exact,
            seconds=report.simulation.run_seconds,
        )


def random_tensors(config: AttentionConfig, heads: int, tokens: int, seed: int) -> dict[str, Any]:
    """Give normally distributed queries, keys and values whose logits have a standard deviation of 1."""
    rng = np.random.default_rng([seed, heads, tokens])
    return {name: rng.normal(size=(heads, tokens, config.lanes)).astype(np.float32) for name in "qkv"}


def _check_range(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(field, value, f"from {least} to {most}")


def _key(config: AttentionConfig, board: Board, request: CompareRequest, tokens: int) -> str:
    """Name what a measurement follows from."""
    given = (config_hash("attention", config, board), request.heads, request.seed, tokens, _code_digest())
    return hashlib.sha256(repr(given).encode()).hexdigest()[:16]


def _known(path: Path) -> dict[str, Measured]:
    """Read the measurements of an earlier run by their keys; none where there is no such file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != COMPARE_FORMAT:
            return {}
        measured = {key: Measured(**entry) for key, entry in document["measured"].items()}
        # What was wrong is looked at again: it may have been the golden model.
        return {key: found for key, found in measured.items() if found.exact}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _code_digest() -> str:
    """Digest of what a co-simulation is made of: the gateware and the memory model."""
    digest = hashlib.sha256()
    for package in (hw.attention, hw.lib, sim.memory):
        root = Path(package.__path__[0])
        for path in sorted(file for kind in ("py", "cpp", "h", "sv") for file in root.rglob(f"*.{kind}")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
