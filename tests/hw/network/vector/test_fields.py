"""Commands that the gates cannot run are refused, each with the number that is wrong."""

from dataclasses import replace

import pytest

from hw.errors import InputError
from hw.network.commands import Addition, Bounds, TapTile, Target, VectorKind
from hw.network.scratchpad.shape import GranuleShape
from hw.network.vector.config import VectorConfig
from hw.network.vector.fields import Places, tap_row, vector_fields
from tests.hw.network.vector.drawn import Drawn
from tests.hw.network.vector.wide import DrawnWide

CONFIG = VectorConfig(shape=GranuleShape())


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (VectorKind.ADD, {"addition": Addition(first=1, second=1, shift=8)}, "shift of an addition must be"),
        (VectorKind.ADD, {"addition": Addition(first=1 << 26, second=1, shift=24)}, "factor must be"),
        (VectorKind.SOFTMAX, {"channels": 4097}, "channels must be"),
        (VectorKind.SOFTMAX, {"steps": 1 << 27}, "steps of a softmax must be"),
        (VectorKind.MEAN, {"taps": 181, "kernel_columns": 182}, "elements of a window must be"),
        (VectorKind.MAX, {"taps": 256}, "taps must be"),
        (VectorKind.TABLE, {"rows": 1 << 14}, "rows must be"),
        (VectorKind.TABLE, {"bounds": Bounds(height=0, width=1)}, "height must be"),
    ],
)
def test_commands_that_cannot_run(kind, changes, message):
    command = Drawn(0).command(kind)
    vector_fields(CONFIG, command, Places())
    with pytest.raises(InputError, match=message):
        vector_fields(CONFIG, replace(command, **changes), Places())


@pytest.mark.parametrize(
    ("at", "changes", "message"),
    [
        (0, {"rows": 2}, "rows of a LayerNorm must be"),
        (0, {"pixel": 510}, "last pixel of a LayerNorm must be"),
        (0, {"epsilon": 0}, "epsilon of a LayerNorm must be"),
        (0, {"channels": 67}, "channels of a LayerNorm must be"),
        (1, {"bits": 9}, "bits of a LayerNorm must be"),
        (1, {"shift": 36}, "shift of a LayerNorm must be"),
        (1, {"channels": 112}, "granules of a LayerNorm's result must be"),
        (3, {"addition": None}, "addition of int16 must be"),
        (3, {"addition": Addition(first=1, second=1, shift=19)}, "shift of an addition must be"),
        (3, {"addition": Addition(first=1, second=1, shift=24, exceptions=((0, 0),))}, "addition of int16"),
        (4, {"taps": 64, "addition": Addition(first=1 << 25, second=0, shift=24)}, "factors of a mean"),
        (4, {"target": Target(base=0, pitch=1, granules=1, zero=1)}, "zero point of an int16 target must be"),
    ],
)
def test_commands_on_int16_that_cannot_run(at, changes, message):
    drawn = DrawnWide(0)
    command = [*drawn.norms(96, 4), drawn.sum(), drawn.mean()][at]
    vector_fields(CONFIG, command, Places())
    with pytest.raises(InputError, match=message):
        vector_fields(CONFIG, replace(command, **changes), Places())


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (Places(tap=511), "tap rows must be"),
        (Places(scale=512), "scales must be"),
        (Places(table=64), "tables must be"),
        (Places(exponential=2), "tables of exponentials must be"),
    ],
)
def test_rows_beyond_the_tables(places, message):
    command = replace(Drawn(0).command(VectorKind.MEAN), taps=3)
    with pytest.raises(InputError, match=message):
        vector_fields(CONFIG, command, places)


def test_taps_are_of_one_pixel():
    tile = TapTile(offset=-5, row=-1, columns=(2,) * 4, valid=(True,) * 4)
    assert tap_row(CONFIG, tile) == {"offset": 2**18 - 5, "row": -1, "column": 2}
    for changes in ({"columns": (2, 2, 2, 3)}, {"valid": (True, True, True, False)}):
        with pytest.raises(InputError, match="granules of a window's tap must be of one pixel"):
            tap_row(CONFIG, replace(tile, **changes))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lanes": 8}, r"lanes must be a power of two from 16 to 64, not 8"),
        ({"lanes": 128}, r"lanes must be a power of two from 16 to 64, not 128"),
        ({"shape": GranuleShape(granule_bits=32)}, r"granule_bits must be 128, not 32"),
        ({"tables": 3}, r"tables must be a power of two"),
        ({"pixels": 1024}, r"pixels must be a power of two from 2 to 512, not 1024"),
        ({"channels": 100}, r"channels must be a power of two"),
    ],
)
def test_sizes_that_cannot_be(fields, message):
    with pytest.raises(InputError, match=message):
        VectorConfig(**{"shape": GranuleShape()} | fields)
