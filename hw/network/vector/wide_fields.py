"""Commands on int16 in fields of the gates, and the rows of channels' factors."""

from __future__ import annotations

from typing import Any

from hw.errors import InputError, check_one_of, check_range
from hw.network.commands import VectorCommand, VectorKind
from hw.network.normalization import (
    LEAST_SHIFT,
    SHIFT_BITS,
    ChannelRows,
    dropped_bits,
    most_epsilon,
    split_channels,
)
from hw.network.vector.config import VectorConfig
from hw.network.vector.wide_lanes import WIDE_LANES

#: Kinds on int16.
WIDE_KINDS = (VectorKind.STATS, VectorKind.NORM, VectorKind.ADD16, VectorKind.MEAN16)
#: Kinds whose steps are words of a pixel.
WORD_KINDS = (VectorKind.STATS, VectorKind.NORM)
#: Bits of the sum of a mean's factors, so that no sum of its products overflows.
_MEAN_BITS = 30


def pixel_words(config: VectorConfig, command: VectorCommand) -> int:
    """Return the words of a pixel of int16."""
    return -(-_granules(command) // config.granules)


def takes_two(command: VectorCommand) -> bool:
    """Say whether a tile is two words of int16, not one."""
    return command.kind is VectorKind.STATS or command.bits == 8


def word_fields(config: VectorConfig, command: VectorCommand, *, channel: int) -> dict[str, Any]:
    """Return the fields of statistics or a LayerNorm that differ from those of other commands.

    ``channel``: the first of its rows of channels.
    """
    source, granules = command.sources[0], config.granules
    words, tile = pixel_words(config, command), 2 if takes_two(command) else 1
    mask = config.shape.words * config.shape.granules - 1
    odd, twos = split_channels(command.channels)

    def walk(start: int, across: int, further: int, between: int) -> dict[str, int]:
        fields = {"start": start, "row": 0, "outer": further, "inner": across, "column": between}
        return {name: value & mask for name, value in fields.items()}

    return {
        "first": walk(source.base, source.across, tile * granules, granules),
        "second": walk(source.base + granules, source.across, tile * granules, granules),
        "target": walk(command.target.base, command.target.pitch, granules, 0),
        "column": {"start": 0, "row": 0, "outer": tile, "inner": 0, "column": 1},
        "stride_y": 0,
        "height": 1,
        "width": words,
        "pair_step": 1,
        "odd": 0,
        "silent": int(command.kind is VectorKind.STATS),
        "counts_words": 1,
        "last_word": words - 1,
        "last_read": (1 << _granules(command) - (words - 1) * granules) - 1,
        "byte": int(command.bits == 8),
        "pixel": command.pixel,
        "shift": command.shift - LEAST_SHIFT if command.kind is VectorKind.NORM else 0,
        "channel_row": channel,
        "pixel_settings": {
            "channels": command.channels,
            "odd": odd,
            "twos": twos,
            "dropped": dropped_bits(odd),
            "epsilon": command.epsilon,
        },
    }


def check_wide(config: VectorConfig, command: VectorCommand) -> None:
    """Raise `InputError` for a command on int16 that the unit cannot run."""
    for name, zero in (("source", command.sources[0].zero), ("target", command.target.zero)):
        check_range(f"zero point of an int16 {name}", zero, 0, 0)
    if command.kind not in WORD_KINDS:
        addition = command.addition
        if addition is None or addition.exceptions:
            raise InputError("addition of int16", addition, "one without exceptions")
        if command.kind is VectorKind.MEAN16:
            elements = command.taps * command.kernel_columns
            check_range("factors of a mean of int16", elements * addition.first, 0, (1 << _MEAN_BITS) - 1)
        return
    check_range("rows of a LayerNorm", command.rows, 1, 1)
    check_range("last pixel of a LayerNorm", command.pixel + command.columns, 1, config.pixels)
    check_one_of("bits of a LayerNorm", command.bits, (8, 16))
    check_range("epsilon of a LayerNorm", command.epsilon, 1, most_epsilon(command.channels))
    if command.kind is VectorKind.NORM:
        check_range("shift of a LayerNorm", command.shift, LEAST_SHIFT, LEAST_SHIFT + (1 << SHIFT_BITS) - 1)
        granules = -(-command.channels * command.bits // 128)
        check_range("granules of a LayerNorm's result", command.target.granules, granules, granules)


def channel_slots(config: VectorConfig, rows: ChannelRows, *, bits: int) -> list[dict[str, int]]:
    """Return the rows of a LayerNorm's channels, one for each lane, for results of 8 or 16 bits.

    A row of int16 uses the lanes of the first word alone.
    """
    lanes = config.lanes if bits == 8 else config.granules * WIDE_LANES
    found = []
    for first in range(0, len(rows.gains), lanes):
        for lane in range(config.lanes):
            channel = first + lane
            if lane >= lanes or channel >= len(rows.gains):
                found.append({"gain": 0, "fine": 0, "bias": 0})
                continue
            fine = rows.fines[channel]
            found.append(
                {
                    "gain": rows.gains[channel],
                    "fine": fine % 4,
                    "bias": rows.biases[channel] + (fine == -1),
                }
            )
    return found


def _granules(command: VectorCommand) -> int:
    """Return the granules of a pixel of int16."""
    return -(-command.channels // WIDE_LANES)
