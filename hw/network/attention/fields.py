"""From a command as plain data to the fields of the gates."""

from __future__ import annotations

from typing import Any

from hw.attention.config import MULTIPLIER_BITS
from hw.errors import InputError, check_range
from hw.network.attention.config import GRANULE_LANES, AttentionUnitConfig
from hw.network.attention.layouts import MOST_HEADS
from hw.network.commands import AttentionCommand, HeadTensor


def attention_fields(config: AttentionUnitConfig, command: AttentionCommand) -> dict[str, Any]:
    """Return the fields of a command (`hw.network.attention.layouts.AttentionFields`).

    Raises `InputError` for a command that the unit cannot run.
    """
    check_range("heads", command.heads, 1, MOST_HEADS)
    check_range("queries", command.queries, 1, config.tokens)
    check_range("keys", command.keys, 1, config.tokens)
    if command.head_dim % GRANULE_LANES:
        raise InputError("head_dim", command.head_dim, f"a multiple of {GRANULE_LANES}")
    check_range("head_dim", command.head_dim, GRANULE_LANES, config.lanes)
    if command.causal:
        check_range("queries of causal attention", command.queries, 1, command.keys)
    check_range("score multiplier", command.multiplier, 1, 2**MULTIPLIER_BITS - 1)
    check_range("score shift", command.shift, 1, 47)
    check_range(
        "output multiplier", command.output_multiplier, 2 ** (MULTIPLIER_BITS - 1), 2**MULTIPLIER_BITS - 1
    )
    check_range("output shift", command.output_shift, 19, 47)
    return {
        "q": _rows(config, command.q),
        "k": _rows(config, command.k),
        "v": _rows(config, command.v),
        "o": _rows(config, command.out),
        "last_head": command.heads - 1,
        "last_query": command.queries - 1,
        "last_key": command.keys - 1,
        "visible": command.keys - command.queries + 1 if command.causal else command.keys,
        "causal": int(command.causal),
        "units": command.head_dim // GRANULE_LANES,
        "scales": {
            "multiplier": command.multiplier,
            "shift": command.shift,
            "output": {"multiplier": command.output_multiplier, "shift": command.output_shift},
        },
    }


def _rows(config: AttentionUnitConfig, tensor: HeadTensor) -> dict[str, int]:
    """Return the addresses of a tensor, which wrap at the end of the scratchpad."""
    size = 1 << config.shape.granule_address_bits
    return {"base": tensor.base % size, "pitch": tensor.pitch % size, "step": tensor.step % size}
