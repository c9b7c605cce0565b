"""What an attention launch asks of the engine: multiplications, bytes, cycles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.model.predict import predict_launch
from hw.attention.model.traffic import traffic
from hw.attention.movers.movers import port_count
from hw.board import Board
from sim.engines.attention.job import AttentionJob, Piece
from sim.run.adapter import Metrics


def attention_metrics(job: AttentionJob, config: AttentionConfig, board: Board) -> Metrics:
    """Count and predict; useful are the pairs of a query and a key that it sees."""
    inputs = job.inputs
    shapes = [piece.shape for piece in job.pieces]
    sizes = inputs.q.shape[2] + inputs.v.shape[2]
    pairs = sum(len(piece.golden.q) * _pairs(piece) for piece in job.pieces)
    moved = traffic(config, shapes)
    results = job.exact.size * config.result_bits // 8
    ports, memory = port_count(config), board.memory
    width = config.port_width(memory.port_data_width)
    channel_bytes = memory.realistic_bytes_per_second / memory.channels / (board.clock_mhz * 1e6)
    return Metrics(
        useful_macs=pairs * sizes,
        mac_slots_per_cycle=2 * config.streams * config.rows * config.lanes,
        compulsory_bytes=inputs.q.size + results + _seen_keys(job) * sizes,
        predicted_read_bytes=moved.read_bytes,
        predicted_write_bytes=moved.write_bytes,
        predicted_cycles=predict_launch(config, board, shapes),
        memory_bytes_per_cycle=min(ports * width / 8, min(ports, memory.channels) * channel_bytes),
        details={
            "jobs": len(job.pieces),
            "heads": inputs.heads,
            "queries": inputs.q.shape[1],
            "keys": inputs.k.shape[1],
            "pairs_seen": pairs,
        },
    )


def _pairs(piece: Piece) -> int:
    """Count the pairs of a query of one head and a key that it sees."""
    _, queries, _ = piece.golden.q.shape
    return piece.golden.mask.pairs(queries, piece.golden.k.shape[1])


def _seen_keys(job: AttentionJob) -> int:
    """Count the keys, of all K/V heads, that some query sees."""
    seen: dict[tuple[int, int], NDArray[np.bool_]] = {}
    for piece in job.pieces:
        own = seen_keys(piece)
        for head in range(piece.kv_heads.start, piece.kv_heads.stop):
            place = (piece.sequence, head)
            seen[place] = seen[place] | own if place in seen else own
    return sum(int(keys.sum()) for keys in seen.values())


def seen_keys(piece: Piece) -> NDArray[np.bool_]:
    """Say for each key whether any query of the job sees it."""
    mask, queries, keys = piece.golden.mask, piece.golden.q.shape[1], piece.golden.k.shape[1]
    first, last = mask.limits(queries, keys)
    seen = np.zeros(keys, bool)
    if mask.bitmap is None:
        # Positions follow one another, so their ranges leave no gap.
        some = last >= first
        if some.any():
            seen[first[some].min() : last[some].max() + 1] = True
        return seen
    for block, tiles in enumerate(mask.bitmap):
        rows = slice(block * mask.tile_queries, (block + 1) * mask.tile_queries)
        low, high = int(first[rows].min()), int(last[rows].max()) + 1
        seen[low:high] |= np.repeat(tiles, mask.tile_keys)[:keys][low:high]
    return seen
