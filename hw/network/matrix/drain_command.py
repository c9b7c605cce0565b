"""The command of the drain, and how a matrix command becomes one."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import signed
from amaranth.lib import data

from hw.lib.arithmetic.rescaled_sum import FACTOR_BITS, FRACTION_BITS
from hw.lib.arithmetic.sum_exceptions import SumExceptions, exception_fields
from hw.network.commands import MatrixCommand
from hw.network.matrix.config import RESULT_BITS
from hw.network.matrix.feed_command import MOST_STEPS
from hw.network.matrix.result_walk import ResultOrder
from hw.network.scratchpad.shape import GranuleShape


class DrainSettings(data.StructLayout):
    """Bounds, a sum with a residual and a table for the results of a command."""

    def __init__(self) -> None:
        super().__init__(
            {
                "wide": 1,  #: Results and residual are int16, without a table; otherwise they are int8.
                "low": signed(RESULT_BITS),  #: ``low``, ``high``: bounds of the convolution's results.
                "high": signed(RESULT_BITS),
                "sums": 1,  #: A residual is added.
                "zeros": data.ArrayLayout(signed(8), 2),  #: Zero points of result and residual.
                "factors": data.ArrayLayout(FACTOR_BITS, 2),  #: Of result and residual.
                "exceptions": SumExceptions(),  #: Of result and residual.
                "zero": signed(8),  #: Zero point of the sum.
                "sum_low": signed(RESULT_BITS),  #: ``sum_low``, ``sum_high``: bounds of the sum.
                "sum_high": signed(RESULT_BITS),
                "maps": 1,  #: Results pass the table.
            }
        )


class DrainCommand(data.StructLayout):
    """Addresses and settings for the results of a matrix command.

    A result of the array is a word, or two if its elements are int16: those of the lower half of the columns,
    and those of the upper half.
    """

    def __init__(self, shape: GranuleShape) -> None:
        address = shape.granule_address_bits
        enables = data.ArrayLayout(shape.granules, 2)
        super().__init__(
            {
                "order": ResultOrder(),
                "base": address,  #: ``base``, ``pitch``: of the results, see `ResultWalk`.
                "pitch": address,
                "second": address,  #: Granules from a result's first word to its second one.
                "enable": enables,  #: Granules of the words of the last column tile.
                "last_enable": enables,  #: Granules of the words of the command's last result.
                #: Two pixels of one granule each: the second moves from the upper half to granule 1.
                "paired": 1,
                "residual_base": address,  #: ``residual_base``, ``residual_pitch``: of the residual.
                "residual_pitch": address,
                "residual_second": address,  #: As ``second``.
                "settings": DrainSettings(),
            }
        )


def drain_command(command: MatrixCommand, *, tile_granules: int) -> dict[str, Any]:
    """Return the drain's part of a matrix command; ``tile_granules``: of a column tile of int8."""
    target, wide = command.target, command.bits == 16
    pixels = command.rows * command.columns
    each = 2 if command.halves else 1
    words = -(-pixels // each)
    blocks = -(-words // MOST_STEPS)
    parts = 2 if wide else 1
    granules = target.granules - parts * tile_granules * (command.column_tiles - 1)
    odd = each * words > pixels
    residual = {"residual_base": 0, "residual_pitch": 0, "residual_second": 0}
    if command.residual is not None:
        across = command.residual.across
        residual = {
            "residual_base": command.residual.base,
            "residual_pitch": each * across,
            "residual_second": across if command.halves else tile_granules,
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
        "second": target.pitch if command.halves else tile_granules,
        "enable": _enables(command, granules, tile_granules, pixels=each),
        "last_enable": _enables(command, granules, tile_granules, pixels=each - odd),
        "paired": int(command.halves and granules == 1 and not wide),
        **residual,
        "settings": _settings(command),
    }


def _enables(command: MatrixCommand, granules: int, tile_granules: int, *, pixels: int) -> list[int]:
    """Return the granules of both words of a result that has ``pixels`` of ``granules`` each."""
    if command.bits == 8:
        return [2 ** (pixels * granules) - 1, 0]
    if command.halves:
        return [2**granules - 1, 2**granules - 1 if pixels == 2 else 0]
    return [2 ** min(granules, tile_granules) - 1, 2 ** max(granules - tile_granules, 0) - 1]


def _settings(command: MatrixCommand) -> dict[str, Any]:
    target, addition = command.target, command.addition
    settings: dict[str, Any] = {
        "wide": int(command.bits == 16),
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
    if command.residual is not None and addition is not None:
        assert addition.shift == FRACTION_BITS
        settings |= {
            "sums": 1,
            "zeros": [target.zero, command.residual.zero],
            "factors": [addition.first, addition.second],
            "exceptions": exception_fields(addition.exceptions),
        }
    return settings
