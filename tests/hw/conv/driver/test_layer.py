"""Layers: the units that they need, and refused values."""

import pytest

from hw.conv.core.layouts import Offsets
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.errors import InputError
from tests.support.conv.jobs import small

SIZES = {"channels": 12, "rows": 9, "columns": 10, "outputs": 24}


@pytest.mark.parametrize(
    ("changes", "kind", "size"),
    [
        ({}, LayerKind.POINTWISE, (9, 10)),
        ({"group": 4}, LayerKind.POINTWISE, (9, 10)),
        ({"strides": (2, 1)}, LayerKind.SAMPLES, (5, 10)),
        ({"offsets": Offsets.FREE}, LayerKind.SAMPLES, (9, 10)),
        ({"kernel": (3, 2), "pads": (1, 0, 2, 3)}, LayerKind.SAMPLES, (10, 12)),
        ({"kernel": (3, 3), "outputs": 12, "group": 12, "dilations": (2, 1)}, LayerKind.DEPTHWISE, (5, 8)),
        ({"outputs": 12, "group": 12}, LayerKind.DEPTHWISE, (9, 10)),
        ({"kernel": (3, 3), "group": 12}, LayerKind.SAMPLES, (7, 8)),  # two results of each channel
    ],
)
def test_kinds_and_sizes(changes, kind, size):
    layer = ConvLayer(**{**SIZES, **changes})
    assert (layer.kind, layer.out_size) == (kind, size)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 4096}, "rows must be from 1 to 4095, not 4096"),
        ({"columns": 0}, "columns must be from 1 to 4095, not 0"),
        ({"channels": 2**14 + 1}, "channels must be from 1 to 16384"),
        ({"kernel": (3, 8)}, r"kernel must be from 1 to 7, not \(3, 8\)"),
        ({"strides": (0, 1)}, "strides must be from 1 to 7"),
        ({"dilations": (64, 1)}, "dilations must be from 1 to 63"),
        ({"pads": (128, 0, 0, 0)}, "pads must be from 0 to 127"),
        ({"rows": 4095, "pads": (1, 0, 0, 0)}, "pads must be such that a side of the result is at most 4095"),
        ({"zero": 128}, "zero must be from -128 to 127"),
        ({"group": 5}, "group must be a divisor of 12 channels, not 5"),
        ({"idle_channels": 12}, "idle_channels must be from 0 to 11, not 12"),
        ({"group": 4, "idle_channels": 3}, "idle_channels must be from 0 to 2, not 3"),
        ({"group": 4, "outputs": 22}, "group must be a divisor of 22 outputs, not 4"),
        ({"offset_group": 5, "offsets": Offsets.FREE}, "offset_group must be a divisor of 12 channels"),
        ({"kernel": (5, 5), "dilations": (2, 3)}, "kernel must be no larger than the padded map"),
        ({"bound": 3}, "bound must be None without offsets, not 3"),
        ({"masked": True}, "masked must be False without offsets"),
        ({"offset_group": 2}, "offset_group must be 1 without offsets"),
        ({"offsets": Offsets.FREE, "dot": True, "masked": True}, "dot must be false with masks"),
        ({"offsets": Offsets.FREE, "dot": True, "kernel": (3, 3)}, "dot must be false with masks, or where"),
        (
            {"offsets": Offsets.FREE, "dot": True, "offset_group": 2},
            "offset_group must be 1 with offsets comp",
        ),
        ({"offsets": Offsets.FREE, "bound": -1}, "bound must be a whole number of at least 0"),
        ({"offsets": Offsets.SQUARE, "kernel": (3, 2)}, "kernel must be odd"),
        ({"offsets": Offsets.SQUARE, "masked": True}, "masked must be False with square offsets"),
        ({"offsets": Offsets.SQUARE, "offset_group": 2}, "offset_group must be 1 with square offsets"),
    ],
)
def test_wrong_layers_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        ConvLayer(**{**SIZES, **changes})


@pytest.mark.parametrize(
    ("changes", "words", "units", "lanes"),
    [
        ({"channels": 20}, 2, [12, 8], {0: 0, 19: 19}),
        ({"channels": 20, "parts": 2}, 2, [8, 2], {0: 0, 9: 9, 10: 16, 19: 25}),
        ({"channels": 20, "groups": 2}, 2, [16, 10], {0: 0, 9: 9, 10: 16, 19: 25}),
        ({"channels": 6, "groups": 2}, 1, [8, 3], {0: 0, 2: 2, 3: 8, 5: 10}),
    ],
)
def test_forms(changes, words, units, lanes):
    config, form = small(generators=2), MapForm(**changes)  # slices of 8 of 16 lanes
    assert form.words(config) == words
    assert form.units(config) == units
    found = form.lanes(config)
    assert {channel: found[channel] for channel in lanes} == lanes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": 3}, "parts must be 1 or 2, and a divisor of 20 channels, not 3"),
        ({"parts": 2, "groups": 2}, "parts must be 1 for a map with groups of offsets, not 2"),
        ({"groups": 3}, "groups must be a divisor of 20 channels, not 3"),
    ],
)
def test_wrong_forms_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        MapForm(channels=20, **changes)
