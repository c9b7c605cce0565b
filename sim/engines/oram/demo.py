"""The oblivious map's demo: a vocabulary in the host's memory, and private lookups of sentences."""

import functools
from collections.abc import Sequence

import numpy as np

from hw.oram.config import OramConfig
from sim.engines.oram.lookups import LookupPhase, Lookups, burst_count
from sim.engines.oram.lookups_page import page_counts, write_lookups
from sim.golden import minilm
from sim.golden.oram.leakage import histogram, same_distribution
from sim.run.adapter import Demo
from sim.run.result import RunResult

#: The launch's name.
LAUNCH = "vocabulary"
#: Pages of four slots: rows of 384 bytes wait for the host's link. Every operation touches a page, so that
#: the host cannot recognize labels in HBM. The overflow is full within 10^12 operations with less than 2^-40
#: (`hw.oram.sizing.lists`). Records on four ports arrive long before the deadlines.
CONFIG = OramConfig(
    value_bytes=384,
    log_n=15,
    items_per_label=2,
    slots=4,
    list_slots=7,
    pad="always",
    position_ports=2,
    record_ports=4,
    inflight=16,
    overflow_entries=64,
    touch_cycles=1024,
    settle_cycles=512,
)
#: Of the paragraph, with their numbers of tokens.
SENTENCES = (
    "It is in this that the distinction between the two engines lies.",
    "We do not wish to deny to this latter all such claims.",
)
#: Lookups of the skewed workload, and of the uniform one.
DRAWS = 2048


@functools.cache
def vocabulary() -> Lookups:
    """Return the vocabulary of all-MiniLM-L6-v2, int8 with a scale for each of the 384 dimensions, and its
    lookups.

    These are two sentences, words by Zipf's law in the order of their numbers, roughly that of their
    frequency, and words drawn uniformly.
    """
    words = minilm.words()
    table = np.rint(words / np.abs(words).max(axis=0) * 127).astype(np.int8)
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, len(table) + 1)
    return Lookups(
        table,
        [
            *(LookupPhase(f"“{text}”", np.array(minilm.tokens(text))) for text in SENTENCES),
            LookupPhase("skewed", rng.choice(len(table), DRAWS, p=shares / shares.sum())),
            LookupPhase("uniform", rng.choice(len(table), DRAWS)),
        ],
    )


def oram_demo() -> Demo:
    """Return the demo: the vocabulary as a table in the host's memory, and lookups of its rows."""
    author = minilm.paragraph()["author"]
    return Demo(
        title=f"the vocabulary of all-MiniLM-L6-v2 in the host's memory, and sentences of {author} looked up",
        config=CONFIG,
        launches={LAUNCH: lambda results: vocabulary().tensors},
        conclude=lambda results: conclusions(vocabulary(), results[LAUNCH]),
        documents={
            "lookups.html": (
                "The host's view: sentences on the bus, histograms of pages",
                lambda results, path: write_lookups(vocabulary(), results[LAUNCH], minilm.word_of, path),
            )
        },
        traced=True,
        kept=True,
    )


def conclusions(lookups: Lookups, done: RunResult) -> Sequence[str]:
    """Return the conclusions: rows loaded, rows found, and the host's view.

    The last two phases are the skewed and the uniform workload.
    """
    config = done.job.config
    loading, *seen = lookups.seen(done)
    rows, size = lookups.table.shape
    every = (loading.reads[-1] - loading.reads[0]) / (rows - 1)
    lines = [f"{rows:,} rows of {size} bytes loaded by the device, one every {every:.1f} cycles."]
    for phase, right in zip(lookups.phases, lookups.right(done), strict=True):
        lines.append(f"{phase.name}: {right:,} of {len(phase.rows):,} rows looked up equal the loaded ones.")
    equal = "equal" if done.bit_exact else "NOT all equal"
    lines.append(
        f"{burst_count(done):,} bursts at the host's memory, {equal} to the trace computed from the labels, "
        "without keys and values."
    )
    skewed, uniform = (page_counts(config, touched) for touched in seen[-2:])
    flat = [histogram(np.repeat(np.arange(len(n)), n), len(n), tests=3).p for n in (skewed, uniform)]
    same = same_distribution(seen[-2].pages, seen[-1].pages, tests=3).p
    lines.append(
        f"Pages that the skewed and the uniform workload touched: uniform by chi-squared, p = {flat[0]:.3f} "
        f"and {flat[1]:.3f}; of one distribution by Kolmogorov and Smirnov, p = {same:.3f}."
    )
    return lines
