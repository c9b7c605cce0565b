"""The command of the drain, and how a matrix command becomes one."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import signed
from amaranth.lib import data

from hw.lib.arithmetic.rescaled_sum import FACTOR_BITS, FRACTION_BITS
from hw.lib.arithmetic.sum_exceptions import SumExceptions, exception_fields
from hw.network.commands import MatrixCommand
from hw.network.matrix.feed_command import MOST_STEPS
from hw.network.matrix.result_walk import ResultOrder
from hw.network.scratchpad.shape import GranuleShape


class DrainSettings(data.StructLayout):
    """Bounds, a sum with a residual and a table for the results of a command."""

    def __init__(self) -> None:
        super().__init__(
            {
                "low": signed(8),  #: ``low``, ``high``: bounds of the convolution's results.
                "high": signed(8),
                "sums": 1,  #: A residual is added.
                "zeros": data.ArrayLayout(signed(8), 2),  #: Zero points of result and residual.
                "factors": data.ArrayLayout(FACTOR_BITS, 2),  #: Of result and residual.
                "exceptions": SumExceptions(),  #: Of result and residual.
                "zero": signed(8),  #: Zero point of the sum.
                "sum_low": signed(8),  #: ``sum_low``, ``sum_high``: bounds of the sum.
                "sum_high": signed(8),
                "maps": 1,  #: Results pass the table.
            }
        )


class DrainCommand(data.StructLayout):
    """Addresses and settings for the results of a matrix command."""

    def __init__(self, shape: GranuleShape) -> None:
        address = shape.granule_address_bits
        super().__init__(
            {
                "order": ResultOrder(),
                "base": address,  #: ``base``, ``pitch``: of the results, see `ResultWalk`.
                "pitch": address,
                "enable": shape.granules,  #: Granules of a word of the last column tile.
                "last_enable": shape.granules,  #: Granules of the command's last word.
                #: Two pixels of one granule each: the second moves from the upper half to granule 1.
                "paired": 1,
                "residual_base": address,  #: ``residual_base``, ``residual_pitch``: of the residual.
                "residual_pitch": address,
                "settings": DrainSettings(),
            }
        )


def drain_command(command: MatrixCommand, *, tile_granules: int) -> dict[str, Any]:
    """Return the drain's part of a matrix command; a column tile has ``tile_granules``."""
    target = command.target
    pixels = command.rows * command.columns
    each = 2 if command.halves else 1
    words = -(-pixels // each)
    blocks = -(-words // MOST_STEPS)
    granules = target.granules - tile_granules * (command.column_tiles - 1)
    enable = 2 ** (each * granules) - 1
    settings: dict[str, Any] = {
        "low": target.low,
        "high": target.high,
        "sums": 0,
        "zeros": [target.zero, 0],
        "factors": [0, 0],
        "exceptions": exception_fields(()),
        "zero": command.sum_target[0],
        "sum_low": command.sum_target[1],
        "sum_high": command.sum_target[2],
        "maps": int(command.table >= 0),
    }
    residual = {"residual_base": 0, "residual_pitch": 0}
    if command.residual is not None and command.addition is not None:
        addition = command.addition
        assert addition.shift == FRACTION_BITS
        settings |= {
            "sums": 1,
            "zeros": [target.zero, command.residual.zero],
            "factors": [addition.first, addition.second],
            "exceptions": exception_fields(addition.exceptions),
        }
        residual = {
            "residual_base": command.residual.base,
            "residual_pitch": each * command.residual.across,
        }
    return {
        "order": {
            "steps": MOST_STEPS,
            "last_steps": words - (blocks - 1) * MOST_STEPS,
            "blocks": blocks,
            "n_tiles": command.column_tiles,
        },
        "base": target.base,
        "pitch": each * target.pitch,
        "enable": enable,
        "last_enable": 2**granules - 1 if each * words > pixels else enable,
        "paired": int(command.halves and granules == 1),
        **residual,
        "settings": settings,
    }
