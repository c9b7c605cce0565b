"""Cycles and bytes of an attention launch, predicted; see `hw.attention.engine.AttentionEngine.predict`."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from hw.attention.config import AttentionConfig
from hw.attention.driver.division import Share, divide
from hw.attention.driver.modes import mask_of
from hw.attention.driver.workload import AttentionWorkload
from hw.attention.model.launch import launch_cycles
from hw.attention.model.traffic import fetches, traffic
from hw.attention.movers.movers import port_count
from hw.board import Board
from hw.prediction import Prediction


def predict(workload: AttentionWorkload, config: AttentionConfig, board: Board) -> Prediction:
    """Predict cycles, and count bytes and useful MACs: those of visible pairs of a query and a key.

    Raises `InputError` when the configuration does not support the workload.
    """
    shares = divide(workload, config)
    jobs = [share.shape for share in shares]
    passes = list(fetches(config, jobs))
    cycles = launch_cycles(config, board, jobs, passes)
    moved = traffic(config, jobs, passes)
    pairs = sum(job.heads * mask_of(job, config).pairs(job.queries, job.keys) for job in jobs)
    sizes = workload.query_size + workload.value_size
    queries = workload.heads * sum(workload.queries)
    ports, memory = port_count(config), board.memory
    width = config.port_width(memory.port_data_width)
    return Prediction(
        cycles={
            "cycles_busy": cycles.busy,
            "cycles_stall_query": cycles.query,
            "cycles_stall_key": cycles.key,
            "cycles_stall_value": cycles.value,
            "cycles_stall_output": cycles.output,
            "cycles_idle": cycles.idle,
        },
        read_bytes={
            "queries": moved.query_bytes,
            "keys": moved.key_bytes,
            "values": moved.value_bytes,
            "tables": moved.table_bytes,
        },
        write_bytes={"results": moved.write_bytes},
        useful_macs=pairs * sizes,
        mac_slots_per_cycle=2 * config.streams * config.rows * config.lanes,
        compulsory_bytes=queries * (workload.query_size + workload.value_size * config.result_bits // 8)
        + _seen_keys(shares, config) * sizes,
        memory_bytes_per_cycle=min(
            ports * width / 8, min(ports, memory.channels) * board.channel_bytes_per_cycle
        ),
        details={
            "jobs": len(jobs),
            "heads": workload.heads,
            "queries": sum(workload.queries),
            "keys": sum(workload.keys),
            "pairs_seen": pairs,
        },
    )


def _seen_keys(shares: Iterable[Share], config: AttentionConfig) -> int:
    """Count the keys that some query sees, over all K/V heads of a launch."""
    seen = defaultdict(list)
    for share in shares:
        own = mask_of(share.shape, config).seen(share.shape.queries, share.shape.keys)
        for head in range(share.kv_heads.start, share.kv_heads.stop):
            seen[share.sequence, head].append(own)
    return sum(int(np.any(keys, axis=0).sum()) for keys in seen.values())
