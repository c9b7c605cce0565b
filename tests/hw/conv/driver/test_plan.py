"""Jobs: the fields of their descriptors."""

import random

import pytest

from hw.conv.core.layouts import Offsets
from hw.conv.driver.blocks import BlockPlan, PixelWords, block_chunks, plan_blocks
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.route import Rearrangement, sum_shift
from hw.conv.movers import descriptor
from hw.conv.movers.descriptor import pack_descriptor
from hw.errors import InputError
from tests.support.conv.jobs import place, plan, small


def depthwise(channels=20, rows=6, columns=7, **changes):
    sizes = {"channels": channels, "rows": rows, "columns": columns, "outputs": channels, "group": channels}
    return ConvLayer(**{**sizes, "kernel": (3, 3), "pads": (1, 1, 1, 1), **changes})


def pointwise(channels=20, outputs=24, rows=6, columns=7, **changes):
    return ConvLayer(channels=channels, rows=rows, columns=columns, outputs=outputs, **changes)


def has(fields, **expected):
    assert {name: fields.get(name, 0) for name in expected} == expected


def test_depthwise_alone():
    config = small()
    layer = depthwise(offsets=Offsets.FREE, bound=2, masked=True, zero=-5, low=-9, high=8)
    job = plan(config, layer)
    has(
        job.fields,
        flags=descriptor.DEPTHWISE | descriptor.MASKED | descriptor.FREE,
        **{"rows": 6, "columns": 7, "words": 2, "slots": 6, "row_words": 8, "steps": 5, "digits": 1},
        **{"first_need": 4, "first_free": -3, "group_slices": 2, "pad_rows": 1, "dilation_columns": 1},
        **{"tap_zero": -5, "tap_low": -9, "tap_high": 8, "out_rows": 6, "out_columns": 7},
        **{"offset_entries": 5, "offset_low": -16, "offset_high": 16, "offset_units": 6},
        offset_bytes=42 * 5 * 6 * 2,
        **{"offset_pixels": 42, "offset_total_entries": 210},
        # Headers; for each of 2 words: 5 steps of 2 cells, and 16 lanes.
        weight_bytes=16 * (1 + 20 + 1 + 32),
        **{"in_total_words": 84, "out_total_words": 84, "middle_total_words": 0, "blocks": 0},
        **{"in_rows": 6, "in_chunks": 1, "in_pixels": 7, "in_token_chunks": 1, "in_words": 2},
        **{"in_bytes_0": 84, "in_pitch_0": 84, "in_units_0": 12, "in_units_1": 8},
        **{"out_map_rows": 1, "out_map_parts": 42, "out_map_words": 2, "out_bytes_1": 336},
    )
    pack_descriptor(config, job.fields)
    assert sum_shift(config, layer, job.route.tap.buffer) == 6 + 8


def test_offsets_on_chip():
    """As many pairs of numbers a pixel as taps, or one; they are not read."""
    config = small()
    layer = depthwise(rows=4, columns=5, offsets=Offsets.FREE, bound=1, dot=True)
    has(
        plan(config, layer).fields,
        flags=descriptor.DEPTHWISE | descriptor.FREE | descriptor.DOT,
        **{"offset_passes": 9, "offset_entries": 5, "offset_total_entries": 100, "offset_low": -8},
        # 2 words of 9 passes of 2 cells, and two numbers a pass, before taps and parameters.
        weight_bytes=16 * (1 + 36 + 1 + 18 + 1 + 20 + 1 + 32),
    )
    layer = depthwise(rows=4, columns=5, offsets=Offsets.SQUARE, bound=1, dot=True)
    has(plan(config, layer).fields, offset_passes=1, offset_entries=1, offset_total_entries=20)


def test_pointwise_alone():
    config = small()
    job = plan(config, pointwise(low=-1, high=1), beat_bits=256, after=True, most_pixels=32)
    has(
        job.fields,
        flags=descriptor.POINTWISE | descriptor.AFTER,
        # 42 pixels are two blocks of at most 32.
        **{"block": 21, "last_block": 21, "blocks": 2, "block_words": 2, "out_words": 2},
        **{"drain_rows": 21, "drain_last_rows": 21, "drain_columns": 1, "drain_words": 2, "drain_parts": 1},
        **{"part_words": 2, "point_low": -1, "point_high": 1, "tile_repeats": 2},
        # 3 x 3 tiles of a header and 2 beats, and 4 beats of parameters for each of 3.
        tile_bytes=32 * (9 * 3 + 3 * 4),
        **{"in_rows": 1, "in_chunks": 2, "in_pixels": 21, "in_last_pixels": 21, "in_token_chunks": 1},
        **{"in_bytes_0": 21 * 12, "in_last_bytes_1": 21 * 8, "weight_bytes": 0, "words": 0},
        **{"in_total_words": 84, "out_total_words": 84, "middle_total_words": 0},
    )
    pack_descriptor(config, job.fields)


def test_depthwise_then_pointwise():
    job = plan(small(), depthwise(), pointwise(outputs=40), most_pixels=16)
    has(
        job.fields,
        flags=descriptor.DEPTHWISE | descriptor.POINTWISE | descriptor.STRIP,
        **{"in_rows": 6, "in_pixels": 7, "block": 14, "blocks": 3, "block_words": 2, "out_words": 3},
        **{"middle_total_words": 84, "out_total_words": 126, "out_units_0": 24},
    )
    assert [side.layer.outputs for side in (job.route.tap, job.route.point)] == [20, 40]


def test_pointwise_then_depthwise():
    groups = {"offsets": Offsets.FREE, "bound": 1, "offset_group": 2}
    first, second = pointwise(channels=40, outputs=20), depthwise(**groups)
    config = small(generators=2)
    form = MapForm(channels=20, groups=2)
    job = plan(config, first, second, result=form, most_pixels=32)
    has(
        job.fields,
        flags=descriptor.DEPTHWISE | descriptor.POINTWISE | descriptor.POINTWISE_FIRST | descriptor.FREE,
        **{"in_rows": 1, "in_chunks": 2, "in_words": 3, "block_words": 3, "out_words": 2, "words": 2},
        **{"group_slices": 2, "offset_entries": 10, "middle_total_words": 84, "part_words": 2},
    )
    assert job.route.point.lanes.outputs == form.lanes(config)
    with pytest.raises(InputError, match="groups of the map must be 2, as offsets have them, not 1"):
        plan(config, first, second, result=MapForm(channels=20))


def test_samples():
    config = small(fraction_bits=3)
    layer = pointwise(kernel=(3, 3), pads=(1, 1, 1, 1), offsets=Offsets.FREE, bound=1, low=-3)
    job = plan(config, layer, most_pixels=32)
    has(
        job.fields,
        flags=descriptor.DEPTHWISE | descriptor.POINTWISE | descriptor.SAMPLES | descriptor.FREE,
        **{"steps": 9, "digits": 2, "offset_entries": 9, "offset_units": 2, "weight_bytes": 0},
        **{"block_words": 2 * 9 * 2, "block": 21, "point_low": -3, "middle_total_words": 42 * 36},
        tile_bytes=16 * (3 * 2 * 9 * 3 * (1 + 4) + 3 * 8),
    )
    assert sum_shift(config, layer, job.route.tap.buffer) == 6


def test_shuffle_and_split():
    """Half of a map whose rows are split is read, the other is the bypass: both parts leave row by row."""
    config = small()
    bypass = place(config, MapForm(channels=18), half=True)
    job = plan(
        config,
        pointwise(channels=18, outputs=18),
        source=place(config, MapForm(channels=18), half=True),
        result=MapForm(channels=36, parts=2),
        bypass=bypass,
        rearrangement=Rearrangement(split=True, shuffle=True),
    )
    has(
        job.fields,
        flags=descriptor.POINTWISE | descriptor.BYPASS | descriptor.SPLIT,
        # Whole rows: three of 7 pixels.
        **{"block": 21, "blocks": 2, "drain_rows": 3, "drain_last_rows": 3, "drain_columns": 7},
        **{"drain_words": 1, "drain_parts": 2, "part_words": 2, "out_words": 2, "block_words": 2},
        **{"in_rows": 6, "in_chunks": 1, "in_pixels": 7, "in_token_chunks": 3, "in_units_0": 10},
        **{"in_bytes_0": 70, "in_pitch_0": 140, "bypass_pitch_1": 112, "bypass_units_1": 8},
        **{"bypass_in_words": 2, "bypass_parts": 2, "bypass_channels": 9, "bypass_words": 2},
        **{
            "bypass_total_pixels": 42,
            "bypass_total_words": 84,
            "bypass_token_chunks": 3,
            "out_map_parts": 84,
            "out_map_words": 2,
        },
        **{"out_units_0": 10, "out_bytes_0": 840, "out_total_words": 168},
    )


def test_double():
    config = small()
    job = plan(config, pointwise(), rearrangement=Rearrangement(double=True))
    has(
        job.fields,
        flags=descriptor.POINTWISE | descriptor.DOUBLE,
        **{"block": 21, "drain_columns": 7, "out_map_parts": 4 * 42, "out_total_words": 4 * 84},
    )


def test_a_map_in_parts_is_read_part_by_part():
    config = small()
    job = plan(config, pointwise(), source=MapForm(channels=20, parts=2), most_pixels=32)
    has(
        job.fields,
        **{"in_words": 1, "in_pixels": 42, "in_last_pixels": 42, "in_units_0": 8, "in_units_1": 2},
        **{"in_bytes_0": 21 * 16, "in_bytes_1": 21 * 4, "in_total_words": 84, "block_words": 2},
    )


def test_a_half_is_written_row_by_row():
    config = small()
    half = place(config, MapForm(channels=24), half=True)
    job = plan(config, pointwise(), result=half)
    has(job.fields, out_map_rows=6, out_map_parts=7, out_bytes_0=7 * 16, out_pitch_0=2 * 7 * 16)


@pytest.mark.parametrize("seed", range(40))
def test_chunks_are_the_map_and_tokens_are_blocks(seed):
    rng = random.Random(seed)
    config = small(block_pixels=rng.choice([16, 64]), block_words=64)
    size = rng.randint(1, 12), rng.randint(1, 40)
    words = PixelWords(rng.randint(1, 4), rng.randint(1, 4), rng.randint(0, 4))
    pitched, most = rng.random() < 0.5, rng.choice([None, 5])
    whole_rows = size[1] <= (most or 16) and rng.random() < 0.5
    blocks = plan_blocks(config, size, words, most=most, whole_rows=whole_rows, pitched=pitched)
    assert blocks.pixels * max(words.source, words.result) <= 64
    assert blocks.pixels * words.bypass <= config.bypass_words
    assert blocks.pixels <= min(config.block_pixels, most or 64)
    assert (blocks.blocks - 1) * blocks.pixels + blocks.last == size[0] * size[1]
    assert 1 <= blocks.last <= blocks.pixels
    assert not whole_rows or blocks.pixels % size[1] == 0
    chunks = block_chunks(size, blocks, pitched=pitched)
    assert chunks.rows == (size[0] if pitched else 1)
    pixels = [chunks.pixels] * (chunks.chunks - 1) + [chunks.last_pixels]
    assert sum(pixels) * chunks.rows == size[0] * size[1]
    assert not pitched or sum(pixels) == size[1]
    # Each token's chunks are the pixels of a block.
    pixels *= chunks.rows
    starts = range(0, len(pixels), chunks.token_chunks)
    parts = [sum(pixels[n : n + chunks.token_chunks]) for n in starts]
    assert parts == [blocks.pixels] * (blocks.blocks - 1) + [blocks.last]


def test_blocks_are_the_largest():
    config = small(block_pixels=64, block_words=256, bypass_words=64)
    assert plan_blocks(config, (10, 10), PixelWords(1, 1, 0)) == BlockPlan(50, 50, 2)
    assert plan_blocks(config, (10, 10), PixelWords(8, 1, 0)) == BlockPlan(25, 25, 4)
    assert plan_blocks(config, (10, 10), PixelWords(1, 16, 0)) == BlockPlan(15, 10, 7)
    assert plan_blocks(config, (10, 10), PixelWords(1, 1, 4)) == BlockPlan(15, 10, 7)
    assert plan_blocks(config, (3, 30), PixelWords(1, 1, 0), whole_rows=True) == BlockPlan(60, 30, 2)
    assert plan_blocks(config, (3, 10), PixelWords(1, 1, 0), pitched=True) == BlockPlan(30, 30, 1)
    assert plan_blocks(config, (3, 100), PixelWords(1, 1, 0), pitched=True) == BlockPlan(50, 50, 6)


def test_blocks_are_smaller_where_others_wait_for_them():
    """The array begins earlier after a slow unit, unless its weights would take longer then."""
    config = small(block_pixels=64, block_words=2048, inputs=16, outputs=16)
    size = {"rows": 8, "columns": 8}
    slow = depthwise(**size, kernel=(7, 7), pads=(3, 3, 3, 3))
    few, many = pointwise(**size, outputs=8), pointwise(**size, outputs=256)
    assert plan(config, slow, few).blocks.pixels < plan(config, slow, many).blocks.pixels
    assert plan(config, slow, few, most_pixels=64).blocks.pixels == 64


@pytest.mark.parametrize(
    ("layers", "changes", "message"),
    [
        ([depthwise(), depthwise()], {}, r"layers must be one, or a depthwise and a pointwise one, not"),
        ([pointwise(kernel=(3, 3)), depthwise()], {}, "layers must be one, or"),
        ([depthwise(), pointwise(rows=5)], {}, "map of the second layer must be"),
        ([depthwise(), pointwise(channels=24)], {}, "map of the second layer must be"),
        ([pointwise()], {"source": MapForm(channels=21)}, "channels of the source must be 20, not 21"),
        ([pointwise()], {"result": MapForm(channels=20)}, "channels of the result must be 24, not 20"),
        ([pointwise()], {"rearrangement": Rearrangement(split=True)}, "parts must be 2 for a map whose rows"),
        ([depthwise()], {"rearrangement": Rearrangement(double=True)}, "rearrangement must be none behind"),
        ([depthwise()], {"result": MapForm(channels=20, parts=2)}, "result must be MapForm"),
        ([pointwise(columns=33)], {"rearrangement": Rearrangement(double=True)},
         "columns must be at most 32, for blocks of whole rows, not 33"),
        ([pointwise()], {"most_pixels": 0}, "most_pixels must be at least 1"),
        ([pointwise(channels=64, kernel=(7, 7), rows=9, columns=9)],
         {}, "pixel must be of no more words than buffers have: 128, as bypass 128"),
        ([pointwise(channels=1024, kernel=(5, 5), rows=5, offsets=Offsets.FREE, masked=True)], {},
         "products of a sum must be at most 16448 in 48 bits, not 25600"),
    ],
)  # fmt: skip
def test_jobs_that_cannot_be_are_refused(layers, changes, message):
    config = small(block_words=128, fraction_bits=5, bank_words=1024)
    with pytest.raises(InputError, match=message):
        plan(config, *layers, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": (0,)}, r"addresses of the source must be 2, one for each port, not \(0,\)"),
        ({"bypass": (0, 0)}, "bypass must be given with a shuffle, and only then"),
    ],
)
def test_places_are_checked(changes, message):
    config = small()
    forms = {"source": MapForm(channels=20), "bypass": MapForm(channels=24)}
    places = {
        name: place(config, forms[name]).__class__(form=forms[name], addresses=addresses)
        for name, addresses in changes.items()
    }
    with pytest.raises(InputError, match=message):
        plan(config, pointwise(), **places)
