"""The measured figures of the attention engine: launches and the bars they must reach.

``python -m sim.engines.attention.figures [--no-data] [NAME ...]`` runs them on the generated RTL and prints a
table; without names all of them, with ``--no-data`` without the data path.
"""

import functools
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from hw.attention.config import AttentionConfig
from hw.attention.engine import AttentionEngine
from hw.board import load_board
from hw.errors import check_one_of
from hw.launch import Tensor, Tensors
from sim.engines.attention.accuracy import quantized
from sim.engines.attention.drawn import into_pages
from sim.report.report import Report
from sim.run.result import RunResult
from sim.run.run import run

BOARD = "u55c"


def figures_of(report: Report) -> dict[str, float]:
    """Return the figures of a report, by name.

    They are cycles from start to done, useful slots of multipliers, bytes over compulsory ones, and bytes a
    cycle. The last figure is these over the best bandwidth measured on the board's memory.
    """
    memory = load_board(report.board).memory
    moved = report.traffic.useful_bytes / report.cycles.cycles_total
    return {
        "cycles": report.cycles.cycles_total,
        "utilization": report.work.mac_utilization_ratio,
        "over_compulsory": report.traffic.useful_bytes / report.traffic.compulsory_bytes,
        "bytes_per_cycle": moved,
        "of_realistic": moved * report.cycles.clock_mhz * 1e6 / memory.realistic_bytes_per_second,
    }


@dataclass(frozen=True, kw_only=True)
class Bar:
    """Legal range of a figure."""

    name: str  #: Name of one of `figures_of`.
    #: Legal values.
    least: float = 0.0
    most: float = float("inf")

    def holds(self, figures: Mapping[str, float]) -> bool:
        """Say whether the figure reaches it."""
        return self.least <= figures[self.name] <= self.most

    def text(self, figures: Mapping[str, float]) -> str:
        """Describe the measured and the legal values."""
        value = figures[self.name]
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
        limits = [f"at least {self.least:g}"] if self.least else []
        limits += [f"at most {self.most:,g}"] if self.most < float("inf") else []
        return f"{self.name} {shown} ({' and '.join(limits)})"


def _compulsory(most: float = 1.0) -> Bar:
    return Bar(name="over_compulsory", least=1.0, most=most)


def _useful(least: float, *, most: float = 1.0) -> tuple[Bar, ...]:
    return Bar(name="utilization", least=least), _compulsory(most)


@dataclass(frozen=True)
class Figure:
    """A launch and its bars."""

    name: str
    title: str
    tensors: Callable[[], Tensors]  #: Makes the user's tensors.
    bars: tuple[Bar, ...] = _useful(0.98)  #: All must hold.
    engine: str = "full"  #: Name of its configuration in `CONFIGS`.

    @property
    def config(self) -> AttentionConfig:
        """Shape of the engine."""
        return CONFIGS[self.engine]


_FULL = AttentionEngine().default_config(load_board(BOARD))
_STREAMS_16 = AttentionConfig(rows=2, folds=1, streams=16, ports_per_stream=1, port_bits=512, merge_lanes=8)
#: "full" is the board's default; "streams_16" has as many multipliers, and caches for decoding.  All but the
#: default have one fold.
CONFIGS = {
    "full": _FULL,
    "full_paged": replace(_FULL, paged=True),
    "small": AttentionConfig(rows=8, folds=1, merge_lanes=8),
    "streams_16": _STREAMS_16,
    "streams_16_paged": replace(_STREAMS_16, paged=True),
}


def normal(
    heads: int,
    queries: int,
    keys: int | None = None,
    *,
    kv_heads: int | None = None,
    spread: float = 1.0,
    size: int = 64,
) -> dict[str, Tensor]:
    """Draw normally distributed tensors, in int8; logits have the standard deviation ``spread``."""
    shapes = {
        "q": (heads, queries, size),
        "k": (kv_heads or heads, keys or queries, size),
        "v": (kv_heads or heads, keys or queries, size),
    }
    tensors: dict[str, Tensor] = {}
    for seed, (name, shape) in enumerate(shapes.items()):
        tensors[name], step = quantized(np.random.default_rng(seed), shape, spread if name == "q" else 1.0)
        tensors[f"{name}_scale"] = np.asarray(step)
    return tensors


def rising() -> dict[str, Tensor]:
    """Return logits that rise by some whole log2 units from tile to tile."""
    keys, tile = 1024, 64
    tensors = normal(1, keys)
    q, k = (np.zeros((1, keys, 64), np.int8) for _ in range(2))
    q[..., 0] = 127
    k[0, :, 0] = np.arange(keys) // tile * 8 - 64
    scales = {"q_scale": np.asarray(0.1), "k_scale": np.asarray(0.3)}
    return tensors | scales | {"q": q, "k": k}


def _causal(heads: int, tokens: int) -> dict[str, Tensor]:
    return normal(heads, tokens) | {"causal": np.asarray(True)}


def _sparse(heads: int, tokens: int, share: float) -> dict[str, Tensor]:
    """Return a bitmap with ``share`` of all tiles of 32 queries and 64 keys, drawn at random."""
    bitmap = np.zeros((tokens // 32, tokens // 64), bool)
    drawn = np.random.default_rng(3).choice(bitmap.size, round(share * bitmap.size), replace=False)
    bitmap.flat[drawn] = True
    blocks = {"bitmap_queries": np.asarray(32), "bitmap_keys": np.asarray(64)}
    return normal(heads, tokens) | blocks | {"bitmap": bitmap}


def _packed(heads: int, sequences: int) -> dict[str, Tensor]:
    """Return sequences of 64 to 511 tokens, packed."""
    lengths = np.random.default_rng(4).integers(64, 512, sequences)
    return normal(heads, int(lengths.sum())) | {"sequence_lengths": lengths}


def _decode_batch(sequences: int) -> dict[str, Tensor]:
    """Return one query of 12 heads for each sequence, on 2,048 keys of its own."""
    keys = np.full(sequences, 2048)
    return normal(12, sequences, int(keys.sum())) | {"query_lengths": np.ones_like(keys), "key_lengths": keys}


def _both_phases(sequences: int) -> dict[str, Tensor]:
    """Return 512 tokens after 512 others, and further sequences with one query on 2,048 keys."""
    queries, keys = np.array([512] + [1] * sequences), np.array([1024] + [2048] * sequences)
    tensors = normal(12, int(queries.sum()), int(keys.sum())) | {"causal": np.asarray(True)}
    return tensors | {"query_lengths": queries, "key_lengths": keys}


_decode_grouped = functools.partial(normal, 32, 1, 2048, kv_heads=8)

FIGURES = (
    Figure("head_1024", "1 head, N = 1,024", lambda: normal(1, 1024)),
    Figure("heads_1024", "12 heads, N = 1,024", lambda: normal(12, 1024), _useful(0.995)),
    Figure("heads_256", "12 heads, N = 256", lambda: normal(12, 256)),
    Figure("heads_128", "12 heads, N = 128", lambda: normal(12, 128), _useful(0.95)),
    Figure("heads_64", "12 heads, N = 64", lambda: normal(12, 64), _useful(0.85)),
    Figure("heads_32", "12 heads, N = 32", lambda: normal(12, 32), _useful(0.6)),
    Figure("causal_1024", "12 heads, causal, N = 1,024", lambda: _causal(12, 1024), _useful(0.975)),
    Figure("causal_512", "12 heads, causal, N = 512", lambda: _causal(12, 512), _useful(0.96)),
    Figure("causal_256", "12 heads, causal, N = 256", lambda: _causal(12, 256), _useful(0.88)),
    Figure(
        "window_64",
        "12 heads, causal, N = 1,024, a window of 64",
        lambda: _causal(12, 1024) | {"window": np.asarray(64)},
        _useful(0.75),
    ),
    Figure("causal_4096", "12 heads, causal, N = 4,096", lambda: _causal(12, 4096), _useful(0.985)),
    Figure("rising", "1 head, N = 1,024, maxima rise at every tile", rising),
    Figure("grouped_8_on_2", "8 query heads on 2, N = 1,024", lambda: normal(8, 1024, kv_heads=2)),
    Figure("grouped_32_on_8", "32 query heads on 8, N = 1,024", lambda: normal(32, 1024, kv_heads=8)),
    Figure(
        "sparse_1024",
        "12 heads, N = 1,024, a quarter of all tiles",
        lambda: _sparse(12, 1024, 0.25),
        _useful(0.98, most=1.007),
    ),
    Figure(
        "sparse_10",
        "12 heads, N = 1,024, a tenth of all tiles",
        lambda: _sparse(12, 1024, 0.1),
        _useful(0.985, most=1.01),
    ),
    Figure(
        "sparse_3",
        "12 heads, N = 1,024, 15 of 512 tiles, and none in most blocks of queries",
        lambda: _sparse(12, 1024, 0.03),
        _useful(0.72, most=1.01),
    ),
    Figure(
        "packed_16",
        "12 heads of 16 packed sequences of 64 to 511 tokens",
        lambda: _packed(12, 16),
        _useful(0.9, most=1.0005),
    ),
    Figure(
        "small_array",
        "ITA's size: 8 rows, S = 256",
        lambda: normal(1, 256),
        (Bar(name="cycles", most=8650), _compulsory()),
        "small",
    ),
    Figure(
        "decode",
        "decode, 8 heads, 1 query on 8,192 keys",
        functools.partial(normal, 8, 1, 8192),
        (Bar(name="of_realistic", least=0.93), _compulsory()),
    ),
    Figure(
        "decode_batch",
        "decode, 16 sequences of 2,048 keys, 12 heads",
        lambda: _decode_batch(16),
        (Bar(name="of_realistic", least=0.97), _compulsory(1.0002)),
    ),
    Figure("decode_grouped", "decode, 32 query heads on 8, 2,048 keys", _decode_grouped, _useful(0.8)),
    Figure(
        "both_phases",
        "12 heads: 512 tokens after 512, causal, and 16 sequences that decode on 2,048 keys each",
        lambda: _both_phases(16),
        (_compulsory(1.01),),
    ),
    Figure(
        "decode_grouped_16_streams",
        "decode, 32 query heads on 8, 2,048 keys, out of caches",
        _decode_grouped,
        _useful(0.84),
        "streams_16",
    ),
    Figure(
        "paged_1024",
        "12 heads, N = 1,024, in pages of 64 keys",
        lambda: into_pages(normal(12, 1024), _FULL.tile_span, seed=0),
        _useful(0.998, most=1.03),
        "full_paged",
    ),
    Figure(
        "paged_causal_1024",
        "12 heads, causal, N = 1,024, in pages of 64 keys",
        lambda: into_pages(_causal(12, 1024), _FULL.tile_span, seed=0),
        _useful(0.975, most=1.03),
        "full_paged",
    ),
    Figure(
        "paged_decode_16_streams",
        "decode, 16 sequences of 2,048 keys in pages of 1,024, 12 heads",
        lambda: into_pages(_decode_batch(16), _STREAMS_16.tile_span, seed=0),
        (Bar(name="of_realistic", least=0.97), _compulsory(1.0005)),
        "streams_16_paged",
    ),
    Figure("long_flat", "1 head, N = 8,192, flat logits", lambda: normal(1, 8192, spread=0.1)),
    Figure("long_peaky", "1 head, N = 8,192, peaky logits", lambda: normal(1, 8192, spread=4.0)),
)


def measure(figure: Figure, directory: Path, *, control_only: bool = False) -> tuple[RunResult, float]:
    """Run a figure on the RTL with the calibrated memory; return its result, and the seconds it took."""
    tensors, board = figure.tensors(), load_board(BOARD)
    began = time.perf_counter()
    result = run("attention", figure.config, board, tensors, directory=directory, control_only=control_only)
    return result, time.perf_counter() - began


def main(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Default: all figures.")
    ] = None,
    no_data: Annotated[bool, typer.Option("--no-data", help="Simulate without the data path.")] = False,
) -> None:
    """Print measured figures of the attention engine, as a table; fail when one misses a bar."""
    known = {figure.name: figure for figure in FIGURES}
    for name in names or ():
        check_one_of("figure", name, known)
    good = True
    print(
        "| figure | cycles | predicted | useful | bytes over least | bytes a cycle | RMS error "
        "| simulated cycles a second | wall s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for figure in (known[name] for name in names or known):
        with tempfile.TemporaryDirectory() as directory:
            result, seconds = measure(figure, Path(directory), control_only=no_data)
        report = result.report
        found = figures_of(report)
        error = report.errors.get("relative_rms_error_int8_inputs")
        print(
            f"| {figure.title} | {found['cycles']:,} | {report.prediction.predicted_cycles:,} "
            f"| {found['utilization']:.2%} | {found['over_compulsory']:.6g} | {found['bytes_per_cycle']:.1f} "
            f"| {'not computed' if error is None else f'{error:.1e}'} "
            f"| {report.simulated.simulated_cycles_per_second:,.0f} | {seconds:.1f} |",
            flush=True,
        )
        missed = [bar.text(found) for bar in figure.bars if not bar.holds(found)]
        for line in (*missed, *result.mismatches[:1]):
            print(f"{figure.name}: {line}", file=sys.stderr)
            good = False
    raise typer.Exit(not good)


if __name__ == "__main__":
    typer.run(main)
