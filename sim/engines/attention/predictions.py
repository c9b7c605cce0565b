"""How well cycles are predicted: random launches of the board's default engine on the calibrated memory.

``python -m sim.engines.attention.predictions [--seeds N] [--first SEED]`` simulates the control of a launch
for each of so many seeds and prints those whose prediction is off by more than 1 %, and a summary.  The exit
status is 1 if one is off by more than 2 %.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hw.attention.config import AttentionConfig
from hw.board import load_board
from hw.errors import InputError
from sim.engines.attention.cases import tensors_of
from sim.engines.attention.figures import BOARD, CONFIGS
from sim.run.adapter import Tensor
from sim.run.run import run

#: Errors that are printed, and that no launch should have, as shares of the cycles.
SHOWN, MOST = 0.01, 0.02
#: Most tokens of a sequence, and most products of a query and a key, so that a launch takes a second.
_TOKENS, _PAIRS = 1024, 4_000_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A launch's cycles, simulated and predicted.

    Members
    -------
    seed, text
        Of the launch, and what it is.
    cycles, predicted
        Simulated ones, and those of the prediction.
    """

    seed: int
    text: str
    cycles: int
    predicted: int

    @property
    def error(self) -> float:
        """What the prediction is off by, as a share of the cycles."""
        return (self.predicted - self.cycles) / self.cycles


def random_launch(rng: np.random.Generator, config: AttentionConfig) -> dict[str, Tensor]:
    """Draw a launch as users have them, of any mode that the configuration has.

    Lengths are as often short as long: two launches of five have as many queries as keys, one decodes, two
    have numbers that have nothing to do with each other; half of them have two or five sequences.
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


def compare(seeds: Iterable[int]) -> Iterator[Comparison]:
    """Simulate the control of a random launch for each seed."""
    config, board = CONFIGS["full"], load_board(BOARD)
    for seed in seeds:
        tensors = random_launch(np.random.default_rng([2, seed]), config)
        with tempfile.TemporaryDirectory() as directory:
            result = run("attention", config, board, tensors, directory=Path(directory), control_only=True)
        report = result.report
        yield Comparison(
            seed=seed,
            text=_text(tensors),
            cycles=report.cycles.cycles_total,
            predicted=report.prediction.predicted_cycles,
        )


def _text(tensors: dict[str, Tensor]) -> str:
    """Say what a launch is."""
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


def summary(found: Sequence[Comparison]) -> str:
    """Sum up what predictions are off by."""
    errors = [abs(each.error) for each in found]
    worst = max(found, key=lambda each: abs(each.error))
    return (
        f"{len(found)} launches, {sum(each.cycles for each in found):,} cycles: {errors.count(0.0)} "
        f"exactly, the mean off by {np.mean(errors):.2%}, the worst {worst.error:+.2%} (seed {worst.seed}); "
        f"{sum(error > SHOWN for error in errors)} by more than {SHOWN:.0%}, "
        f"{sum(error > MOST for error in errors)} by more than {MOST:.0%}"
    )


def main(words: Sequence[str]) -> bool:
    """Print the launches whose predictions are off, and the summary; say whether all are good.

    Raises `InputError` for a number that is no number of seeds.
    """
    parser = argparse.ArgumentParser(
        description="Compare predicted cycles of random launches with simulations."
    )
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="how many launches (200)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="seed of the first one (0)")
    given = parser.parse_args(words)
    for name, least in (("seeds", 1), ("first", 0)):
        if getattr(given, name) < least:
            raise InputError(name, getattr(given, name), f"a whole number of at least {least}")
    found = []
    for each in compare(range(given.first, given.first + given.seeds)):
        found.append(each)
        if abs(each.error) > SHOWN:
            print(
                f"seed {each.seed}: {each.cycles:,} cycles, predicted {each.predicted:,} "
                f"({each.error:+.2%}): {each.text}",
                flush=True,
            )
    print(summary(found))
    return all(abs(each.error) <= MOST for each in found)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
