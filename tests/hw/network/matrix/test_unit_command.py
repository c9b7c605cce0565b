"""Commands beyond the matrix unit's counters are refused by name."""

from dataclasses import replace

import pytest

from hw.errors import InputError
from hw.network.commands import Bounds, MatrixCommand, Source, TapTile, Target
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.unit_command import unit_command
from hw.network.scratchpad.shape import GranuleShape

TAP = TapTile(offset=0, row=0, columns=(0, 0, 0, 0))
COMMAND = MatrixCommand(
    rows=8,
    columns=8,
    source=Source(base=0, across=4, down=32),
    bounds=Bounds(height=8, width=8),
    first_tap=0,
    taps=1,
    column_tiles=1,
    target=Target(base=0, pitch=4, granules=4),
    weights=0,
)


def payload(taps=(TAP,), **fields):
    command = replace(COMMAND, taps=len(taps), **fields)
    return unit_command(command, taps, GranuleShape(), MatrixConfig())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bounds": Bounds(height=4097, width=8)}, "rows of an input must be from 0 to 4096, not 4097"),
        ({"columns": 4097}, "columns of an output must be from 0 to 4096, not 4097"),
        (
            {"columns": 4096, "bounds": Bounds(height=8, width=8, stride_x=2)},
            "columns that outputs span must be from 0 to 4096, not 8190",
        ),
        ({"taps": (TAP,) * 513}, "taps of a column tile must be from 0 to 512, not 513"),
        ({"taps": (TAP, replace(TAP, row=128))}, "rows of a kernel must be from 0 to 127, not 128"),
        (
            {"taps": (TAP, replace(TAP, columns=(0, 0, 0, 128)))},
            "columns of a kernel must be from 0 to 127, not 128",
        ),
        ({"column_tiles": 1 << 16}, "column tiles must be from 0 to 65535, not 65536"),
        ({"shifts": (8,)}, "shift of a k tile must be from 0 to 7, not 8"),
        ({"shifts": (1, 1)}, "shifts must be none, or one for each of 1 taps"),
        ({"bits": 12}, "bits must be 8 or 16, not 12"),
        ({"bits": 16, "table": 0}, "command of int16 must be without table"),
        ({"bits": 16, "sum_target": (1, 0, 9)}, "command of int16 must be without table"),
    ],
)
def test_commands_that_cannot_be(fields, message):
    payload()
    with pytest.raises(InputError, match=message):
        payload(**fields)
