"""The factors of a LayerNorm of a network: its channels' gains and biases, and epsilon, in integers."""

from __future__ import annotations

from hw.network.graph.network import LayerNorm, Value
from hw.network.normalization import ChannelRows, channel_rows, epsilon_units, split_channels


def norm_rows(operator: LayerNorm, before: Value, after: Value) -> tuple[ChannelRows, int]:
    """Return the rows of channels and epsilon, in units of the value that is normalized.

    Raises `InputError` for gains, numbers of channels and an epsilon that have no integers.
    """
    split_channels(before.shape[2])
    gains, biases = ((each.astype(float) / after.scale).tolist() for each in (operator.gain, operator.bias))
    rows = channel_rows(gains, biases, bits=after.bits, zero=after.zero)
    return rows, epsilon_units(operator.epsilon, before.shape[2], before.scale)
