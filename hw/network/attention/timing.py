"""Cycles of a command on a scratchpad that never waits for another user."""

from __future__ import annotations

from hw.attention.core.drain import Drain
from hw.attention.core.timing import CoreTiming
from hw.lib.skid import Skid
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.feed import AttentionFeed
from hw.network.commands import AttentionCommand

#: Cycles from a beat of results in the writer to ``done``: two registers of the port, grant, count, ``done``.
_WRITTEN = 6


def steps(config: AttentionUnitConfig, command: AttentionCommand) -> int:
    """Return the cycles of a command among others: from its first key to the next command's first one."""
    passes = sum(_pass_steps(config, *each) for each in _passes(config, command))
    results = command.queries * config.row_beats(command.head_dim)
    words = command.queries + command.keys  # of port 1
    return command.heads * max(passes, results, words)


def cycles(config: AttentionUnitConfig, command: AttentionCommand) -> int:
    """Return the cycles from a command's acceptance to its end, with no other command in the unit."""
    timing, passes = CoreTiming(config.core), _passes(config, command)
    # From the merge of a pass's last tile to its first result.
    divided = timing.final + timing.drained - config.core.merge_steps + command.head_dim // config.merge_lanes
    begins = max(AttentionFeed.QUERY_LATENCY + passes[0][0], AttentionFeed.KEY_LATENCY)
    drained = 0
    for rows, keys in passes * command.heads:
        results = begins + _merged(config, keys) + divided
        drained = max(drained, results) + rows * config.row_beats(command.head_dim)
        begins += _pass_steps(config, rows, keys)
    return drained - 1 + Drain.LATENCY + Skid.LATENCY + _WRITTEN


def _passes(config: AttentionUnitConfig, command: AttentionCommand) -> list[tuple[int, int]]:
    """Return the queries and the keys of each pass of a head."""
    found = []
    for first in range(0, command.queries, config.rows):
        end = min(first + config.rows, command.queries)
        seen = end + command.keys - command.queries if command.causal else command.keys
        found.append((end - first, seen))
    return found


def _pass_steps(config: AttentionUnitConfig, rows: int, keys: int) -> int:
    """Return the cycles of a pass among others: of its keys, queries, merges and division."""
    timing, core = CoreTiming(config.core), config.core
    full, rest = divmod(keys, core.tile_keys)
    merges = (full + (rest > 0)) * core.merge_steps
    least = max(rest, timing.ends) if full and rest else rest
    return max(full * core.tile_keys + least, rows, merges, timing.interval)


def _merged(config: AttentionUnitConfig, keys: int) -> int:
    """Return the cycles from the first key of a pass to the merge of its last tile."""
    core, ready = config.core, CoreTiming(config.core).ready + 1
    full, rest = divmod(keys, core.tile_keys)
    if not full:
        return 2 * rest + ready
    return (full + 1) * core.tile_keys + ready + (max(rest, core.merge_steps) if rest else 0)
