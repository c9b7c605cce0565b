"""Accuracy of predicted cycles: random launches of the board's default engine on the calibrated memory.

``python -m sim.engines.attention.predictions [--engines] [--seeds N] [--first SEED]`` simulates the control
of a random launch for each seed.  With ``--engines`` it draws a small engine for each, too.  It prints
launches whose error exceeds half of the limit, and a summary.  The limit is 2 % from 2,000 cycles on, 60
cycles below.  The exit status is 1 if an error exceeds it.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from hw.attention.config import AttentionConfig
from hw.board import Board, load_board
from hw.config import check_fits
from hw.errors import InputError
from hw.launch import Tensor
from hw.registry import find_engine
from sim.engines.attention.cases import tensors_of
from sim.engines.attention.figures import BOARD, CONFIGS
from sim.run.run import run

#: Limits of the error: a share of the cycles, and cycles of launches below ``SHORT`` cycles.
MOST, MOST_CYCLES, SHORT = 0.02, 60, 2000
#: Most tokens of a sequence, and most pairs of a query and a key, so that a launch takes a second.
_TOKENS, _PAIRS = 1024, 4_000_000
_OUTPUTS: tuple[Literal["int8", "int16", "bfloat16"], ...] = ("int8", "int16", "bfloat16")
#: The same for launches of small engines: cycles of the arrays.
_SMALL_CYCLES = 25_000


@dataclass(frozen=True, kw_only=True)
class PredictionCheck:
    """A launch's cycles, simulated and predicted."""

    #: ``seed``, ``text``: seed and description of the launch.
    seed: int
    text: str
    #: ``cycles``, ``predicted``: simulated and predicted cycles.
    cycles: int
    predicted: int

    @property
    def error(self) -> float:
        """Error of the prediction, over the simulated cycles."""
        return (self.predicted - self.cycles) / self.cycles

    @property
    def of_allowed(self) -> float:
        """Absolute error over its limit."""
        allowed = MOST_CYCLES if self.cycles < SHORT else MOST * self.cycles
        return abs(self.predicted - self.cycles) / allowed


def random_launch(rng: np.random.Generator, config: AttentionConfig) -> dict[str, Tensor]:
    """Draw a launch of any mode of the configuration.

    Short lengths are as frequent as long ones.  Two launches of five have as many queries as keys, one
    decodes, two have unrelated numbers; half of them have two or five sequences.
    """
    group = int(rng.choice([1, 1, 2, 4, 8]))
    kv_heads = int(rng.integers(1, 13 if group == 1 else 5))
    pack = int(rng.integers(1, min(group, config.rows) + 1))
    count = int(rng.choice([1, 1, 2, 5]))
    while True:
        queries, keys = (np.exp(rng.uniform(0, np.log(_TOKENS), count)).astype(int) for _ in range(2))
        kind = rng.random()
        if kind < 0.4:
            queries = keys
        elif kind < 0.6:
            queries = np.ones_like(keys)
        if group * kv_heads * int(queries @ keys) <= _PAIRS:
            break
    return tensors_of(rng, config, group=group, kv_heads=kv_heads, pack=pack, queries=queries, keys=keys)


def random_engine(rng: np.random.Generator, board: Board) -> AttentionConfig:
    """Draw a small engine of any kind that fits a board."""
    while True:
        lanes, tile_keys = 16 * int(rng.integers(1, 5)), int(rng.choice([16, 32, 64]))
        try:
            config = AttentionConfig(
                rows=int(rng.integers(1, 9)),
                lanes=lanes,
                folds=int(rng.integers(1, 5)),
                tile_keys=tile_keys,
                streams=int(rng.choice([1, 2, 4])),
                ports_per_stream=int(rng.choice([1, 2])),
                query_ports=int(rng.choice([1, 1, 2, 4])),
                result_ports=int(rng.choice([1, 2, 4])),
                port_bits=int(rng.choice([0, 0, 128, 512])),
                merge_lanes=int(rng.choice([1, 2, 4, 8])),
                cached_keys=tile_keys * int(rng.choice([0, 2, 4, 16])),
                output=_OUTPUTS[int(rng.integers(len(_OUTPUTS)))],
                logit_cap=bool(rng.random() < 0.3),
                alibi=bool(rng.random() < 0.4),
                paged=bool(rng.random() < 0.4),
                decode=bool(rng.random() < 0.6),
            )
            check_fits(find_engine("attention"), config, board)
        except InputError:
            continue
        return config


def small_launch(rng: np.random.Generator, config: AttentionConfig) -> dict[str, Tensor]:
    """Draw a launch of any mode for a small engine."""
    while True:
        group, kv_heads = int(rng.choice([1, 1, 2, 4])), int(rng.integers(1, 7))
        count = int(rng.choice([1, 1, 1, 2, 5]))
        queries, keys = (np.exp(rng.uniform(0, np.log(1500), count)).astype(int) for _ in range(2))
        kind = rng.random()
        if kind < 0.4:
            queries = keys
        elif kind < 0.7:
            queries = np.ones_like(keys)
        pairs = group * kv_heads * int(queries @ keys)
        if pairs * config.folds / (config.rows * config.streams) <= _SMALL_CYCLES:
            break
    pack = int(rng.integers(1, min(group, config.rows) + 1))
    if rng.random() < 0.5:
        config = replace(config, paged=False)
    return tensors_of(rng, config, group=group, kv_heads=kv_heads, pack=pack, queries=queries, keys=keys)


def compare(seeds: Iterable[int], *, engines: bool = False) -> Iterator[PredictionCheck]:
    """Simulate the control of a random launch for each seed, of the default engine or of a random one."""
    board = load_board(BOARD)
    for seed in seeds:
        rng = np.random.default_rng([2, seed])
        config = random_engine(rng, board) if engines else CONFIGS["full"]
        tensors = (small_launch if engines else random_launch)(rng, config)
        with tempfile.TemporaryDirectory() as directory:
            result = run("attention", config, board, tensors, directory=Path(directory), control_only=True)
        report = result.report
        yield PredictionCheck(
            seed=seed,
            text=(f"{config}: " if engines else "") + _text(tensors),
            cycles=report.cycles.cycles_total,
            predicted=report.prediction.predicted_cycles,
        )


def _text(tensors: dict[str, Tensor]) -> str:
    """Describe a launch."""
    (heads, queries, query_size), (kv_heads, keys, value_size) = (tensors[name].shape for name in "qv")
    lengths = [
        ", ".join(map(str, tensors[name].tolist())) if name in tensors else str(total)
        for name, total in (("query_lengths", queries), ("key_lengths", keys))
    ]
    modes = [
        name if name == "causal" else f"{name} {tensors[name]}"
        for name in ("causal", "window", "pack")
        if name in tensors
    ]
    modes += ["bitmap"] if "bitmap_keys" in tensors else []
    modes += [name for name in ("softmax_scale", "v_scale", "output_fraction") if name in tensors]
    return "; ".join(
        [
            f"{heads} heads on {kv_heads} of {query_size} and {value_size}",
            f"{lengths[0]} queries",
            f"{lengths[1]} keys",
            *modes,
        ]
    )


def summary(found: Sequence[PredictionCheck]) -> str:
    """Summarize the errors of predictions."""
    errors = [abs(each.error) for each in found]
    worst = max(found, key=lambda each: each.of_allowed)
    return (
        f"{len(found)} launches, {sum(each.cycles for each in found):,} cycles: {errors.count(0.0)} "
        f"exactly, the mean off by {np.mean(errors):.2%}, the worst {worst.error:+.2%} (seed {worst.seed}); "
        f"{sum(each.of_allowed > 0.5 for each in found)} by more than half of what is allowed, "
        f"{sum(each.of_allowed > 1 for each in found)} by more"
    )


def main(
    engines: Annotated[bool, typer.Option("--engines", help="Draw a small engine for each launch.")] = False,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of launches.")] = 200,
    first: Annotated[int, typer.Option(min=0, metavar="SEED", help="Seed of the first one.")] = 0,
) -> None:
    """Compare predicted cycles of random launches with simulations."""
    found = []
    for each in compare(range(first, first + seeds), engines=engines):
        found.append(each)
        if each.of_allowed > 0.5:
            print(
                f"seed {each.seed}: {each.cycles:,} cycles, predicted {each.predicted:,} "
                f"({each.error:+.2%}): {each.text}",
                flush=True,
            )
    print(summary(found))
    raise typer.Exit(any(each.of_allowed > 1 for each in found))


if __name__ == "__main__":
    typer.run(main)
