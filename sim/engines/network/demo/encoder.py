"""Sentences through all-MiniLM-L6-v2, and their similarities beside the float model's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.launch import Tensors
from hw.network.graph.network import Network
from hw.network.graph.transformer.quantize import measure
from hw.network.graph.transformer.rule import Rule
from sim.engines.network.minilm import CALIBRATION, JUDGED, model_file, tokenizer_file
from sim.engines.network.sentences import read_sentences
from sim.golden.minilm import LAYERS, embed
from sim.run.result import RunResult

#: The launch's name.
LAUNCH = "sentences"
#: The first sentences of `JUDGED`, which calibrate nothing: three topics, and two that share a word alone.
COUNT = 8
TITLE = f"all-MiniLM-L6-v2, every operator of all {LAYERS} layers, on {COUNT} sentences"
#: Pairs among the demo's lines.
SHOWN = 4
#: Most tokens of a sentence that the model takes.
_LONGEST = 512

Floats = NDArray[np.float64]


@functools.cache
def texts() -> tuple[str, ...]:
    """Return the sentences."""
    lines = [line.strip() for line in JUDGED.read_text("utf-8").splitlines()]
    return tuple([line for line in lines if line][:COUNT])


@functools.cache
def ids() -> tuple[NDArray[np.int64], ...]:
    """Return the numbers of the sentences' tokens."""
    return tuple(read_sentences(JUDGED, tokenizer_file(), longest=_LONGEST)[:COUNT])


def lengths() -> list[int]:
    """Return the tokens of each sentence."""
    return [len(each) for each in ids()]


@functools.cache
def network() -> Network:
    """Return the model in integers, for the sentences one behind the other."""
    calibration = read_sentences(CALIBRATION, tokenizer_file(), longest=_LONGEST)
    made = measure(model_file(), calibration, longest=_LONGEST, mean=True, name="all-MiniLM-L6-v2")
    return made.network(Rule(), lengths())


def tensors(model: str) -> Tensors:
    """Return the network and the numbers of tokens."""
    return {model: np.array(network(), object), network().inputs[0]: np.concatenate(ids())[np.newaxis]}


@functools.cache
def exact_vectors() -> Floats:
    """Return the float model's vectors, ``[sentences, channels]``."""
    return np.stack([embed(text) for text in texts()]).astype(np.float64)


def vectors(done: RunResult) -> Floats:
    """Return the RTL's vectors, ``[sentences, channels]``."""
    (found,) = done.outputs.values()
    return np.asarray(found, np.float64).reshape(COUNT, -1)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two sentences, and their similarity: the cosine of their vectors."""

    texts: tuple[str, str]
    found: float  #: Of the RTL's vectors.
    exact: float  #: Of the float model's.
    #: ``rank``, ``exact_rank``: among all pairs, from 1 on, the most similar first.
    rank: int
    exact_rank: int


def pairs(found: Floats, exact: Floats) -> list[Pair]:
    """Return all pairs of sentences, the most similar by the RTL first."""
    numbers = list(zip(*np.triu_indices(len(found), 1), strict=True))
    mine, theirs = (_similarities(each) for each in (found, exact))
    rank, exact_rank = (np.argsort(np.argsort(-each, kind="stable")) + 1 for each in (mine, theirs))
    made = [
        Pair(
            texts=(texts()[one], texts()[other]),
            found=float(mine[n]),
            exact=float(theirs[n]),
            rank=int(rank[n]),
            exact_rank=int(exact_rank[n]),
        )
        for n, (one, other) in enumerate(numbers)
    ]
    return sorted(made, key=lambda pair: pair.rank)


def _similarities(vectors: Floats) -> Floats:
    lengths = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines: Floats = (lengths @ lengths.T)[np.triu_indices(len(vectors), 1)]
    return cosines


def conclude(done: RunResult, board: Board) -> Sequence[str]:
    """Put the RTL's similarities beside the float model's."""
    cycles, tokens = done.report.cycles.cycles_total, sum(lengths())
    rate = board.clock_mhz * 1e6 / cycles
    ranked = pairs(vectors(done), exact_vectors())
    same = sum(pair.rank == pair.exact_rank for pair in ranked)
    size = f"{COUNT} sentences of {tokens} tokens in all"
    rates = f"{COUNT * rate:,.0f} sentences and {tokens * rate:,.0f} tokens a second"
    ranks = f"{same} of {len(ranked)} have the same rank"
    worst = largest_difference(ranked)
    lines = [
        f"Sentences: {cycles:,} cycles for {size}, every operator in RTL: {rates}.",
        f"Pairs by similarity, RTL (float model); {ranks}, none is further off than {worst:.3f}:",
    ]
    lines += [
        f"{pair.rank}. {pair.found:.3f} ({pair.exact:.3f}): {' / '.join(pair.texts)}"
        for pair in ranked[:SHOWN]
    ]
    return lines


def largest_difference(ranked: Sequence[Pair]) -> float:
    """Return the largest distance of a similarity from the float model's."""
    return max(abs(pair.found - pair.exact) for pair in ranked)
