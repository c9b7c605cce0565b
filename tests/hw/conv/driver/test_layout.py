"""Maps, offsets and streams of weights, read back in the order of the gates, make up the layer."""

import numpy as np
import pytest

from hw.conv.core.layouts import Offsets
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.layout import gathered, map_words, offset_entries, spread
from hw.conv.driver.weight_streams import ChannelParameters, DotTensors, _check_sums, tap_stream, tile_stream
from hw.errors import InputError
from sim.golden.conv.attributes import Attributes
from sim.golden.conv.formats import requantized
from sim.golden.conv.model import Deformation, accumulators, samples
from tests.support.conv.jobs import plan, small
from tests.support.conv.streams import digits, point_results, tap_results

FORMS = [
    {"channels": 1},
    {"channels": 16},
    {"channels": 41},
    {"channels": 30, "parts": 2},
    {"channels": 34, "parts": 2},
    {"channels": 30, "groups": 3},
]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("changes", FORMS)
def test_maps_come_back_from_the_ports(changes, split):
    config, form = small(generators=2), MapForm(**changes)
    x = np.random.default_rng(1).integers(-128, 128, (form.channels, 3, 5)).astype(np.int8)
    ports = spread(config, form, x, split=split)
    assert [port.size for port in ports] == [15 * form.parts * units for units in form.units(config)]
    np.testing.assert_array_equal(gathered(config, form, ports, (3, 5), split=split), x)


def test_a_port_has_its_lanes_of_every_word_and_no_more():
    config = small()  # 2 ports of 8 lanes
    x = np.arange(41, dtype=np.int8).reshape(41, 1, 1)
    ports = spread(config, MapForm(channels=41), x)
    assert ports[0].tolist() == [*range(8), *range(16, 24), *range(32, 40)]
    assert ports[1].tolist() == [*range(8, 16), *range(24, 32), 40]


def test_parts_follow_each_other_in_a_pixel_or_in_a_row():
    config = small(ports=1)
    x = np.stack([np.arange(3), 10 + np.arange(3)])[:, None].astype(np.int8)  # [2, 1, 3]
    form = MapForm(channels=2, parts=2)
    assert spread(config, form, x)[0].tolist() == [0, 10, 1, 11, 2, 12]
    assert spread(config, form, x, split=True)[0].tolist() == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("taps", [1, 2])
def test_entries_have_the_taps_of_a_step(taps, masked):
    config = small(taps=taps)
    layer = ConvLayer(
        channels=4, rows=2, columns=3, outputs=4, group=4, kernel=(3, 3), pads=(1, 1, 1, 1),
        offset_group=2, offsets=Offsets.FREE, masked=masked,
    )  # fmt: skip
    rng = np.random.default_rng(2)
    offset = rng.integers(-(2**15), 2**15, (36, 2, 3)).astype(np.int16)
    mask = rng.integers(0, 256, (18, 2, 3)).astype(np.uint8)
    raw = offset_entries(config, layer, offset, mask if masked else None)
    left = iter(raw.view("<i2").tolist())
    for y, x, g, step in np.ndindex(2, 3, 2, -(-9 // taps)):
        for tap in range(step * taps, (step + 1) * taps):
            there = tap < 9
            assert next(left) == (offset[2 * (9 * g + tap), y, x] if there else 0)
            assert next(left) == (offset[2 * (9 * g + tap) + 1, y, x] if there else 0)
            if masked:
                assert next(left) == (mask[9 * g + tap, y, x] if there else 0)
    assert not list(left)
    buffer = plan(config, layer).route.tap.buffer
    assert raw.size == 2 * 6 * buffer.entries * buffer.entry_units


def test_square_offsets_are_one_a_pixel():
    layer = ConvLayer(
        channels=4, rows=3, columns=3, outputs=4, group=4, kernel=(3, 3), offsets=Offsets.SQUARE
    )
    raw = offset_entries(small(), layer, np.array([[-2]], np.int16))
    assert raw.tolist() == [254, 255]


def parameters(rng, outputs, shift):
    return ChannelParameters(
        bias=rng.integers(-500, 500, outputs),
        multiplier=rng.integers(0, 2**16, outputs),
        shift=np.full(outputs, shift),
        post=rng.integers(-20, 20, outputs),
    )


def drawn(rng, layer, bits):
    x = rng.integers(-128, 128, (layer.channels, layer.rows, layer.columns)).astype(np.int8)
    limit = 7 if bits == 4 else 127
    w = rng.integers(-limit, limit + 1, (layer.outputs, layer.channels // layer.group, *layer.kernel))
    return x, w.astype(np.int8)


def exact(layer, x, w, given, shape=None):
    attributes = Attributes(
        strides=layer.strides, dilations=layer.dilations, pads=layer.pads,
        group=layer.group, offset_group=layer.offset_group,
    )  # fmt: skip
    sums = accumulators(x, w, attributes, shape, zero=layer.zero, bias=given.bias)
    y = requantized(sums, given.multiplier, given.shift, given.post, low=layer.low, high=layer.high)
    assert len(np.unique(y)) > 20
    return y


POINTWISE = [
    {"channels": 16, "outputs": 8},
    {"channels": 21, "outputs": 35, "zero": -7, "low": -100, "high": 90},
    {"channels": 12, "outputs": 24, "group": 3, "zero": 5},
    {"channels": 64, "outputs": 64, "group": 8},
]


@pytest.mark.parametrize("beat_bits", [128, 512])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("changes", POINTWISE)
@pytest.mark.parametrize("forms", [{}, {"parts": 2}, {"groups": 3}])
def test_tiles_make_up_a_pointwise_layer(changes, bits, beat_bits, forms):
    if any(changes[side] % n for side in ("channels", "outputs") for n in forms.values()):
        forms = {}
    rng = np.random.default_rng(3)
    config = small(weight_bits=bits, outputs=16, generators=2)
    layer = ConvLayer(rows=3, columns=5, **changes)
    forms = [MapForm(channels=changes[side], **forms) for side in ("channels", "outputs")]
    job = plan(config, layer, source=forms[0], result=forms[1], beat_bits=beat_bits)
    x, w = drawn(rng, layer, bits)
    given = parameters(rng, layer.outputs, 24 if bits == 8 else 20)
    side = job.route.point
    stream = tile_stream(config, side, w, given, beat_bits=beat_bits)
    assert stream.size == job.fields["tile_bytes"]
    words = map_words(config, forms[0], x).reshape(15, -1, config.lanes)
    assert words.shape[1] == job.fields["block_words"] == side.words
    out = point_results(config, stream, beat_bits, words, job.fields["out_words"], layer.low, layer.high)
    y = exact(layer, x, w, given)
    np.testing.assert_array_equal(out[:, forms[1].lanes(config)].T.reshape(y.shape), y)


@pytest.mark.parametrize("taps", [1, 2])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    "changes",
    [
        {"channels": 21, "kernel": (3, 3), "zero": 3},
        {"channels": 9, "kernel": (2, 5), "strides": (2, 1)},
        {"channels": 30, "kernel": (3, 3), "offset_group": 3, "offsets": Offsets.FREE, "masked": True},
    ],
)
def test_packets_make_up_a_depthwise_layer(changes, bits, taps):
    rng = np.random.default_rng(4)
    config = small(weight_bits=bits, taps=taps, generators=2)
    channels = changes["channels"]
    layer = ConvLayer(rows=6, columns=7, outputs=channels, group=channels, pads=(1, 1, 1, 1), **changes)
    job = plan(config, layer, beat_bits=256)
    buffer = job.route.tap.buffer
    assert buffer.strip == (changes["kernel"] == (3, 3) and "offsets" not in changes)
    x, w = drawn(rng, layer, bits)
    shape, fraction = None, 0
    if not buffer.strip:
        fraction = config.fraction_bits
        groups, out = layer.offset_group, layer.out_size
        offset = np.zeros((2 * groups * layer.taps, *out), np.int16)
        mask = None
        if layer.offsets is Offsets.FREE:
            offset = rng.integers(-20, 20, offset.shape).astype(np.int16)
            mask = rng.integers(0, 256, (groups * layer.taps, *out)).astype(np.uint8)
        shape = Deformation(offset=offset, mask=mask, fraction_bits=fraction)
    given = parameters(rng, channels, 20 + 2 * fraction + (8 if layer.masked else 0) + (bits == 8) * 4)
    stream = tap_stream(config, job.route.tap, job.route.sampled, w, given, beat_bits=256)
    assert stream.size == job.fields["weight_bytes"]
    attributes = Attributes(
        strides=layer.strides, pads=layer.pads, group=channels, offset_group=layer.offset_group
    )
    taken = np.stack(list(samples(x, layer.kernel, attributes, shape, zero=layer.zero)), axis=1)
    lanes = np.zeros((*taken.shape[:2], buffer.words * config.lanes), np.int64)
    lanes[..., job.route.sampled.lanes(config)] = taken
    steps = 0 if buffer.strip else buffer.steps
    out = tap_results(config, stream, 256, lanes, buffer.words, steps, layer.low, layer.high)
    y = exact(layer, x, w, given, shape)
    np.testing.assert_array_equal(out[:, job.route.sampled.lanes(config)].T.reshape(y.shape), y)


@pytest.mark.parametrize("fraction", [0, 3, 5])
@pytest.mark.parametrize(
    "changes",
    [
        {"channels": 20, "outputs": 9, "zero": -3},
        {"channels": 8, "outputs": 16, "group": 2, "strides": (2, 2), "zero": 128 - 1},
        {"channels": 20, "outputs": 8, "offset_group": 2, "offsets": Offsets.FREE},
        {"channels": 4, "outputs": 8, "group": 4, "offsets": Offsets.FREE, "masked": True},
    ],
)
def test_tiles_make_up_a_layer_of_samples(changes, fraction):
    rng = np.random.default_rng(5)
    config = small(fraction_bits=fraction, generators=2, block_words=4096)
    layer = ConvLayer(rows=6, columns=7, kernel=(3, 3), pads=(1, 1, 1, 1), **changes)
    job = plan(config, layer)
    side, form = job.route.point, job.route.source
    x, w = drawn(rng, layer, 8)
    shape, shift, zero = None, 23, 0
    if layer.offsets is Offsets.FREE:
        size = (9 * layer.offset_group, *layer.out_size)
        offset = rng.integers(-2 << fraction, 2 << fraction, (2 * size[0], *size[1:])).astype(np.int16)
        mask = rng.integers(0, 256, size).astype(np.uint8) if layer.masked else None
        shape = Deformation(offset=offset, mask=mask, fraction_bits=fraction)
        shift += 2 * fraction + (8 if layer.masked else 0)
    else:
        zero = layer.zero  # plain pixels leave
    given = parameters(rng, layer.outputs, shift)
    attributes = Attributes(
        strides=layer.strides, pads=layer.pads, group=layer.group, offset_group=layer.offset_group
    )
    taken = np.stack(list(samples(x, layer.kernel, attributes, shape, zero=layer.zero))) + zero
    count = job.fields["digits"]
    assert np.array_equal(sum(digits(taken, count)[d].astype(np.int64) << 8 * d for d in range(count)), taken)
    lanes = np.zeros((count, 9, taken.shape[1], form.words(config) * config.lanes), np.int8)
    lanes[..., form.lanes(config)] = digits(taken, count)
    words = lanes.transpose(2, 0, 1, 3).reshape(taken.shape[1], -1, config.lanes)
    assert words.shape[1] == job.fields["block_words"]
    stream = tile_stream(config, side, w, given, beat_bits=128)
    assert stream.size == job.fields["tile_bytes"]
    out = point_results(config, stream, 128, words, job.fields["out_words"], layer.low, layer.high)
    y = exact(layer, x, w, given, shape)
    np.testing.assert_array_equal(out[:, side.form.lanes(config)].T.reshape(y.shape), y)


def test_biases_that_sums_have_no_room_for_are_refused():
    config = small(samples=False)
    layer = ConvLayer(channels=8, outputs=8, rows=1, columns=1)
    job = plan(config, layer)
    given = parameters(np.random.default_rng(6), 8, 20)
    given.bias[3] = -(1 << 28)
    with pytest.raises(InputError, match="bias must be below 268435456 in units of the sums, not 268435456"):
        tile_stream(config, job.route.point, np.zeros((8, 8, 1, 1), np.int8), given, beat_bits=128)


@pytest.mark.parametrize("zero", [0, -128, 100])
def test_offsets_whose_sums_some_map_exceeds_are_refused(zero):
    """At the limit: the sum of the worst map just fits; one more does not."""
    channels = 40
    rng = np.random.default_rng(zero + 128)
    w = rng.integers(-127, 128, (1, channels), dtype=np.int8)
    sums = [np.where(w > 0, x, -1 - x).astype(int) - zero for x in (127, -128)]
    low, high = sorted(int((w * x).sum()) for x in sums)
    for bias, fits in (((1 << 26) - 1 - high, True), ((1 << 26) - high, False), (-(1 << 26) - low, False)):
        dot = DotTensors(w=w, bias=np.array([bias]), multiplier=np.array([1]), shift=np.array([20]))
        if fits:
            _check_sums(dot, zero)
        else:
            with pytest.raises(InputError, match="sum of offsets must be below 67108864 for every map"):
                _check_sums(dot, zero)


def test_a_decoder_of_codenet_s_widest_network_is_laid_out():
    """Its 2,153 channels: 27 bits hold sums of any usual weights."""
    w = np.random.default_rng(0).integers(-127, 128, (1, 2153), dtype=np.int8)
    dot = DotTensors(w=w, bias=np.zeros(1, int), multiplier=np.array([1]), shift=np.array([20]))
    _check_sums(dot, 0)
