"""The line buffer has every row that a tap may read, and no layer deadlocks."""

import random

import pytest

from hw.conv.core.layouts import Offsets
from hw.conv.driver.buffer import plan_buffer, sample_digits
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.errors import InputError
from tests.support.conv.jobs import small


def draw(rng):
    square = rng.random() < 0.3
    offsets = Offsets.SQUARE if square else rng.choice([Offsets.NONE, Offsets.FREE])
    channels = rng.choice([8, 20, 40])
    changes = {
        "channels": channels,
        "rows": rng.randint(1, 30),
        "columns": rng.randint(1, 20),
        "outputs": channels,
        "group": channels,
        "kernel": (3, 3) if rng.random() < 0.5 else tuple(rng.choice([1, 3, 5]) for _ in range(2)),
        "strides": (rng.randint(1, 4), rng.randint(1, 4)),
        "dilations": (1, 1) if rng.random() < 0.5 else (2, 2),
        "pads": tuple(rng.randint(0, 4) for _ in range(4)),
        "offsets": offsets,
        "bound": None if offsets is Offsets.NONE else rng.choice([None, 0, 1, 2, 5]),
    }
    try:
        return ConvLayer(**changes)
    except InputError:
        return draw(rng)


def rows_read(layer, row, most):
    """Rows of the map that a row of results may read, with all taps moved by all integers up to ``most``."""
    found = set()
    for i in range(layer.kernel[0]):
        times = i - layer.kernel[0] // 2 if layer.offsets is Offsets.SQUARE else 1
        at = row * layer.strides[0] - layer.pads[0] + i * layer.dilations[0]
        found |= {at + times * move for move in range(-most, most + 1)}
    return {y for y in found if 0 <= y < layer.rows}


def check(config, layer, plan):
    most = 0
    if layer.offsets is not Offsets.NONE:
        most = 1 << 15 - config.fraction_bits if layer.bound is None else layer.bound
    banks, step = (4, 4 << plan.split) if plan.strip else (2, 2)
    assert plan.slots % step == 0
    assert plan.slots // banks * plan.row_words <= config.bank_words
    pixels = layer.columns if plan.strip else -(-layer.columns // 2)
    assert plan.row_words == pixels * plan.words
    filled = freed = 0
    for row in range(layer.out_size[0]):
        need = min(layer.rows, plan.first_need + row * layer.strides[0])
        filled = max(filled, min(layer.rows, freed + plan.slots))
        assert need <= filled, "it waits for ever"
        freed = max(0, plan.first_free + row * layer.strides[0])
        if not plan.gather:
            assert rows_read(layer, row, most) <= set(range(freed, need))
    assert layer.rows <= freed + plan.slots, "rows are left over"


@pytest.mark.parametrize("bank_words", [64, 256])
def test_rows_are_there(bank_words):
    rng = random.Random(bank_words)
    config = small(bank_words=bank_words, fraction_bits=8, tap_words=64)
    seen = set()
    for _ in range(400):
        layer = draw(rng)
        try:
            plan = plan_buffer(config, layer, MapForm(channels=layer.channels))
        except InputError as error:
            seen.add(error.field)
            continue
        check(config, layer, plan)
        seen |= {("strip", plan.strip), ("gather", plan.gather), ("all", plan.slots >= layer.rows)}
    assert seen >= {(name, on) for name in ("strip", "gather", "all") for on in (False, True)}
    assert bank_words == 256 or "kernel" in seen


def deformable(**changes):
    sizes = {"channels": 256, "rows": 64, "columns": 64, "outputs": 256, "group": 256, "kernel": (3, 3)}
    return ConvLayer(**{**sizes, "pads": (1, 1, 1, 1), "offsets": Offsets.FREE, **changes})


def test_sixteen_rows_hold_offsets_of_up_to_six():
    """3 x 3 with offsets of up to N pixels: 2 N + 4 rows."""
    config = small(lanes=64, bank_words=1024, strip_words=64, fraction_bits=5)
    plan = plan_buffer(config, deformable(bound=6), MapForm(channels=256))
    assert (plan.slots, plan.gather) == (16, False)
    assert (plan.first_need, plan.first_free) == (8, -7)
    assert plan_buffer(config, deformable(bound=7), MapForm(channels=256)).gather
    refused = small(lanes=64, bank_words=1024, strip_words=64, fraction_bits=5, gather_words=0)
    with pytest.raises(InputError, match="bound must be within the 16 rows of 64 pixels that the line"):
        plan_buffer(refused, deformable(bound=7), MapForm(channels=256))


@pytest.mark.parametrize(
    ("field", "changes", "form", "options"),
    [
        ("words of neighbours", {"kernel": (7, 7)}, {}, {"gather_words": 64}),
        ("offset_group", {"offset_group": 2}, {"groups": 2}, {}),
        ("parts", {}, {"parts": 2}, {}),
        ("dot", {"dot": True}, {}, {"dot_words": 128, "offset_entries": 8192}),
        ("bound", {"offsets": Offsets.SQUARE}, {}, {}),
    ],
)
def test_layers_that_cannot_be_gathered(field, changes, form, options):
    config = small(**{"lanes": 64, "bank_words": 1024, "strip_words": 64, "fraction_bits": 5, **options})
    with pytest.raises(InputError) as caught:
        plan_buffer(config, deformable(bound=7, **changes), MapForm(channels=256, **form))
    assert caught.value.field == field


def test_results_of_the_pointwise_unit_cannot_be_gathered():
    config = small(lanes=64, bank_words=1024, strip_words=64, fraction_bits=5)
    with pytest.raises(InputError, match="depthwise first where offsets reach rows outside"):
        plan_buffer(config, deformable(bound=7), MapForm(channels=256), in_memory=False)


def test_a_map_that_fits_needs_no_bound():
    config = small(lanes=64, bank_words=8192, strip_words=64, fraction_bits=5)
    plan = plan_buffer(config, deformable(), MapForm(channels=256))
    assert (plan.slots, plan.gather) == (64, False)
    assert (plan.first_need, plan.first_free) == (64, -63)


def test_strips_where_they_are_faster():
    config = small(lanes=64, strip_words=64)
    form = MapForm(channels=256)

    def strip(**changes):
        layer = deformable(offsets=Offsets.NONE, channels=256, rows=16, columns=16, **changes)
        return plan_buffer(small(lanes=64, bank_words=1024, strip_words=64), layer, form)

    assert strip().strip
    assert strip(strides=(2, 2)).strip
    assert not strip(strides=(7, 7)).strip  # 15 columns for 3 results of 5 cycles each... and a border
    assert (strip(dilations=(6, 6), pads=(6, 6, 6, 6)).split, strip().steps) == (1, 1)
    assert not strip(dilations=(2, 1)).strip
    assert not strip(dilations=(16, 16), pads=(16,) * 4).strip  # 2^4
    assert not strip(pads=(3, 1, 1, 1)).strip
    assert not plan_buffer(config, deformable(bound=0, rows=4, columns=4), form).strip


@pytest.mark.parametrize(
    ("fraction", "changes", "digits"),
    [
        (0, {}, 1),
        (0, {"zero": -1}, 2),
        (3, {}, 2),
        (4, {}, 2),
        (4, {"zero": 1}, 3),
        (5, {}, 3),
        (5, {"masked": True}, 4),
        (8, {}, 3),
        (8, {"masked": True}, 4),
    ],
)
def test_digits_hold_every_sample(fraction, changes, digits):
    config = small(fraction_bits=fraction)
    layer = deformable(group=1, **changes)
    assert layer.kind is LayerKind.SAMPLES
    assert sample_digits(config, layer) == digits
    scale = 4**fraction * (255 if layer.masked else 1)
    for sample in ((-128 - layer.zero) * scale, (127 - layer.zero) * scale):
        rest = sample
        for _ in range(digits):
            rest = (rest - ((rest + 128) % 256 - 128)) // 256
        assert rest == 0


def test_pixels_as_they_are_have_one_digit():
    assert sample_digits(small(fraction_bits=8), deformable(group=1, offsets=Offsets.NONE, zero=9)) == 1


def test_digits_of_masked_samples_end_at_four():
    with pytest.raises(InputError, match="masked must be false: samples would have 5 bytes, of 4"):
        sample_digits(small(fraction_bits=8), deformable(group=1, masked=True, zero=9))


@pytest.mark.parametrize(
    ("engine", "changes", "message"),
    [
        ({"mask": False}, {"masked": True}, "masked must be False on an engine without it"),
        ({"dot_words": 0}, {"dot": True}, "dot must be False on an engine without it"),
        ({"dot_words": 32, "generators": 1}, {"dot": True, "bound": 1, "rows": 4, "columns": 4},
         "words of the offsets' weights must be at most 32, not 144"),
        ({"dot_words": 256, "bank_words": 4096}, {"dot": True, "bound": 1, "rows": 40, "columns": 40},
         "dot must be such that 3 rows have at most 508 entries"),
        ({}, {"dot": True, "group": 1, "rows": 4, "columns": 4}, "dot must be false for samples"),
        ({"samples": False}, {"group": 1}, "samples must be False on an engine without it"),
        ({"fraction_bits": 8}, {"bound": 128}, "bound must be at most 127, not 128"),
        ({"lanes": 8, "ports": 1}, {"channels": 520, "outputs": 520, "group": 520},
         "channels must be at most 512, not 520"),
        ({"tap_words": 64}, {}, "words of weights must be at most 64, 5 for each word of a pixel, not 80"),
        ({"bank_words": 64}, {"offsets": Offsets.NONE, "strides": (7, 7)}, "kernel must be within the 0"),
        ({"offset_entries": 64}, {"offset_group": 16, "rows": 2, "columns": 2},
         "offset_group must be such that a pixel has at most 60 entries of offsets, not 16"),
    ],
)  # fmt: skip
def test_layers_beyond_the_engine_are_refused(engine, changes, message):
    layer = deformable(**changes)
    form = MapForm(channels=layer.channels, groups=layer.offset_group)
    with pytest.raises(InputError, match=message):
        plan_buffer(small(**engine), layer, form)
