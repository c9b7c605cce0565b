"""The words that a command reads and writes, in the order of its gates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.network.attention.config import GRANULE_LANES, AttentionUnitConfig
from hw.network.commands import AttentionCommand, HeadTensor

Numbers = NDArray[np.int64]


class WordRun(NamedTuple):
    """Words from granule ``addresses`` on, with ``granules`` each; addresses do not wrap yet."""

    addresses: Numbers
    granules: Numbers
    #: Of a read: the first write of the command that surely comes after it.
    before: Numbers


def word_reads(config: AttentionUnitConfig, command: AttentionCommand) -> dict[str, WordRun]:
    """Return the words of ``q``, ``k`` and ``v``; those of each come in order, all three side by side."""
    units = command.head_dim // GRANULE_LANES
    beats = config.row_beats(command.head_dim)
    query = np.arange(command.queries)
    # The first query that sees a key, and from a query the first result of its pass.
    hidden = np.arange(command.keys) - (command.keys - command.queries)
    first = np.maximum(hidden, 0) if command.causal else np.zeros(command.keys, np.int64)
    found = {}
    for name, tensor, needed in (("q", command.q, query), ("k", command.k, first), ("v", command.v, first)):
        results = np.arange(command.heads)[:, None] * command.queries + needed // config.rows * config.rows
        addresses = _rows(tensor, command.heads, len(needed))
        found[name] = WordRun(addresses, np.full(len(addresses), units), results.reshape(-1) * beats)
    return found


def word_writes(config: AttentionUnitConfig, command: AttentionCommand) -> WordRun:
    """Return the words of ``out``."""
    units, size = command.head_dim // GRANULE_LANES, config.beat_granules
    offset = np.arange(0, units, size)
    rows = _rows(command.out, command.heads, command.queries)
    addresses = (rows[:, None] + offset).reshape(-1)
    granules = np.tile(np.minimum(units - offset, size), len(rows))
    return WordRun(addresses, granules, np.arange(len(addresses)))


def _rows(tensor: HeadTensor, heads: int, rows: int) -> Numbers:
    """Return the address of each row, head by head."""
    head, row = np.ogrid[:heads, :rows]
    return np.asarray(tensor.base + head * tensor.step + row * tensor.pitch).reshape(-1)
