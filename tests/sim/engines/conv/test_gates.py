"""Jobs as planned, tensors as laid out: results of the gates equal the golden model's."""

import numpy as np
import pytest

from hw.conv.core.layouts import Offsets
from hw.conv.driver.form import MapForm
from hw.conv.driver.layer import ConvLayer, LayerKind
from hw.conv.driver.layout import map_words, offset_entries
from hw.conv.driver.route import Rearrangement, sum_shift
from hw.conv.driver.weight_streams import ChannelParameters, DotTensors, tap_stream, tile_stream
from hw.conv.movers.descriptor import pack_descriptor, used_bytes
from sim.golden.conv.attributes import Attributes
from sim.golden.conv.formats import computed_offsets, requantized
from sim.golden.conv.model import Deformation, accumulators
from tests.sim.engines.conv.gates import run, whole
from tests.support.conv.jobs import plan, small

BEAT_BITS = 128


class Drawn:
    """A layer with random tensors."""

    def __init__(self, rng, config, layer, buffer):
        self.layer = layer
        bits = config.weight_bits
        limit = 7 if bits == 4 else 127
        shape = (layer.outputs, layer.channels // layer.group, *layer.kernel)
        self.w = rng.integers(-limit, limit + 1, shape).astype(np.int8)
        self.fraction = config.fraction_bits
        # Sums of maps and strips are not scaled; those of samples are times 4^F.
        self.shift = sum_shift(config, layer, buffer)
        self.parameters = parameters(rng, layer.outputs, 24 + self.shift)
        self.offset = self.mask = self.dot = None
        rows, columns = layer.out_size
        taps = layer.offset_group * layer.taps
        reach = 3 << self.fraction
        if layer.dot:
            numbers = 1 if layer.offsets is Offsets.SQUARE else 2 * taps
            w = rng.integers(-127, 128, (numbers, layer.channels)).astype(np.int8)
            given = parameters(rng, numbers, 24)
            self.dot = DotTensors(w=w, bias=given.bias, multiplier=given.multiplier, shift=given.shift)
        elif layer.offsets is Offsets.SQUARE:
            self.offset = rng.integers(-reach, reach + 1, (rows, columns)).astype(np.int16)
        elif layer.offsets is Offsets.FREE:
            self.offset = rng.integers(-reach, reach + 1, (2 * taps, rows, columns)).astype(np.int16)
        if layer.masked:
            self.mask = rng.integers(0, 256, (taps, rows, columns)).astype(np.uint8)

    def result(self, x):
        layer, offset = self.layer, self.offset
        attributes = Attributes(
            strides=layer.strides, dilations=layer.dilations, pads=layer.pads,
            group=layer.group, offset_group=layer.offset_group,
        )  # fmt: skip
        if self.dot is not None:
            sums = accumulators(x, self.dot.w[:, :, None, None], zero=layer.zero, bias=self.dot.bias)
            offset = computed_offsets(sums, self.dot.multiplier, self.dot.shift)
            assert len(np.unique(offset)) > 10
            offset = offset[0] if layer.offsets is Offsets.SQUARE else offset
        shape, scale = None, self.shift
        if offset is not None:
            square = layer.offsets is Offsets.SQUARE
            shape = Deformation(
                offset=offset, mask=self.mask, fraction_bits=self.fraction, bound=layer.bound, square=square
            )
            scale = 0
        given = self.parameters
        sums = (accumulators(x, self.w, attributes, shape, zero=layer.zero) << scale) + given.bias[
            :, None, None
        ]
        y = requantized(sums, given.multiplier, given.shift, given.post, low=layer.low, high=layer.high)
        assert len(np.unique(y)) > 8
        return y


def parameters(rng, outputs, shift):
    return ChannelParameters(
        bias=rng.integers(-500, 500, outputs),
        multiplier=rng.integers(2**14, 2**16, outputs),
        shift=np.full(outputs, shift),
        post=rng.integers(-20, 20, outputs),
    )


def rearranged(y, bypass, changes):
    """ShuffleNet's channel shuffle, then nearest neighbour upsampling."""
    if changes.shuffle:
        y = np.stack([bypass, y], axis=1).reshape(-1, *y.shape[1:])
    return y.repeat(2, axis=1).repeat(2, axis=2) if changes.double else y


def check(config, jobs, seed):
    """Run ``jobs``, dicts of ``layers`` and arguments of `plan`, one after the other."""
    rng = np.random.default_rng(seed)
    feeds = {name: [] for name in ("jobs", "i", "bypass", "tap_weights", "tile_weights", "offsets")}
    expected = []
    for changes in jobs:
        changes = dict(changes)
        layers = changes.pop("layers")
        job = plan(config, *layers, beat_bits=BEAT_BITS, **changes)
        route = job.route
        x = rng.integers(-128, 128, (layers[0].channels, layers[0].rows, layers[0].columns)).astype(np.int8)
        feeds["jobs"].append(
            int.from_bytes(pack_descriptor(config, job.fields)[: used_bytes(config)], "little")
        )
        feeds["i"] += whole(map_words(config, route.source, x).reshape(-1, config.lanes))
        bypass, y = None, x
        if route.rearrangement.shuffle:
            shape = (layers[-1].outputs, *layers[-1].out_size)
            bypass = rng.integers(-128, 128, shape).astype(np.int8)
            form = MapForm(channels=layers[-1].outputs)
            feeds["bypass"] += whole(map_words(config, form, bypass).reshape(-1, config.lanes))
        for layer in layers:
            drawn = Drawn(rng, config, layer, route.tap and route.tap.buffer)
            y = drawn.result(y)
            if layer.kind is LayerKind.DEPTHWISE or layer.dot:
                raw = tap_stream(
                    config, route.tap, route.sampled, drawn.w, drawn.parameters,
                    beat_bits=BEAT_BITS, dot=drawn.dot,
                )  # fmt: skip
                assert raw.size == job.fields["weight_bytes"]
                feeds["tap_weights"] += whole(raw.reshape(-1, BEAT_BITS // 8))
            if drawn.offset is not None:
                feeds["offsets"] += entries(config, route.tap, drawn)
            if layer.kind is not LayerKind.DEPTHWISE:
                raw = tile_stream(config, route.point, drawn.w, drawn.parameters, beat_bits=BEAT_BITS)
                feeds["tile_weights"] += whole(raw.reshape(-1, BEAT_BITS // 8)) * job.fields["tile_repeats"]
        y = rearranged(y, bypass, route.rearrangement)
        words, there = (
            map_words(config, route.result, values).reshape(
                *y.shape[1:], route.result.parts, -1, config.lanes
            )
            for values in (y, np.ones_like(y))
        )
        if route.rearrangement.split:
            words, there = words.swapaxes(1, 2), there.swapaxes(1, 2)
        expected.append((words.reshape(-1, config.lanes), there.reshape(-1, config.lanes) == 1))
        assert len(expected[-1][0]) == job.fields["out_total_words"]
    found = run(config, BEAT_BITS, feeds, sum(len(words) for words, _ in expected))
    for n, (words, there) in enumerate(expected):
        part, found = found[: len(words)], found[len(words) :]
        np.testing.assert_array_equal(part[there], words[there], err_msg=f"job {n}")


def entries(config, side, drawn):
    """Return entries in the form of the reader of offsets."""
    raw = offset_entries(config, drawn.layer, drawn.offset, drawn.mask).view("<i2")
    fields = {Offsets.SQUARE: 1}.get(drawn.layer.offsets, 3 if drawn.mask is not None else 2)
    found = []
    for units in raw.reshape(-1, side.buffer.entry_units).tolist():
        taps = [units[n : n + fields] for n in range(0, len(units), fields)]
        taps = [dict(zip(("dy", "dx", "mask"), tap, strict=False)) for tap in taps]
        found.append(taps + [{}] * (config.taps - len(taps)))
    return found


def depthwise(channels=20, rows=5, columns=6, **changes):
    sizes = {"channels": channels, "rows": rows, "columns": columns, "outputs": channels, "group": channels}
    return ConvLayer(**{**sizes, "kernel": (3, 3), "pads": (1, 1, 1, 1), "zero": -9, **changes})


def pointwise(channels=20, outputs=24, rows=5, columns=6, **changes):
    return ConvLayer(channels=channels, rows=rows, columns=columns, outputs=outputs, zero=3, **changes)


FREE = {"offsets": Offsets.FREE, "bound": 2}
DEPTHWISE = [
    {"layers": [depthwise()]},
    {"layers": [depthwise(**FREE, masked=True)]},
    {"layers": [depthwise(strides=(2, 2), dilations=(1, 2), pads=(0, 2, 1, 2))]},
    {"layers": [depthwise(offsets=Offsets.SQUARE, bound=1)]},
    {"layers": [depthwise(channels=8, kernel=(5, 2), offsets=Offsets.FREE, low=-50, high=60)]},
    {"layers": [depthwise(channels=12, offset_group=3, **FREE)]},
    {"layers": [depthwise(**FREE, dot=True)]},
    {"layers": [depthwise(offsets=Offsets.SQUARE, bound=1, dot=True)]},
]
POINTWISE = [
    {"layers": [pointwise()]},
    {"layers": [pointwise(channels=24, outputs=16, group=4)], "most_pixels": 7},
    {"layers": [depthwise(), pointwise(outputs=9)], "most_pixels": 8},
    {"layers": [pointwise(channels=9, outputs=20), depthwise(**FREE)]},
    {"layers": [pointwise(kernel=(3, 3), pads=(1, 1, 1, 1), strides=(2, 1))]},
    {"layers": [pointwise(channels=8, kernel=(3, 2), pads=(1, 1, 0, 0), **FREE)]},
    {
        "layers": [
            pointwise(channels=6, outputs=8, group=2, offset_group=2, kernel=(2, 2), masked=True, **FREE)
        ]
    },
]
SHUFFLED = [
    {
        "layers": [pointwise(outputs=18)],
        "result": MapForm(channels=36, parts=2),
        "rearrangement": Rearrangement(shuffle=True, split=True),
    },
    {
        "layers": [depthwise(), pointwise(outputs=34)],
        "result": MapForm(channels=68, parts=2),
        "rearrangement": Rearrangement(shuffle=True),
    },
    {"layers": [pointwise(outputs=20)], "rearrangement": Rearrangement(shuffle=True)},
    {"layers": [pointwise(outputs=20)], "rearrangement": Rearrangement(double=True)},
    {"layers": [pointwise(outputs=22)], "result": MapForm(channels=22, parts=2)},
    {"layers": [pointwise()], "source": MapForm(channels=20, parts=2)},
]


SIZE = {"rows": 3, "columns": 4}
QUICK = [
    {"layers": [depthwise(**SIZE), pointwise(outputs=9, **SIZE)], "most_pixels": 5},
    {"layers": [depthwise(channels=9, **SIZE, **FREE, masked=True)]},
    # Offsets on chip, for a second layer directly after the first, and before some that are read.
    {"layers": [pointwise(channels=9, outputs=8, **SIZE), depthwise(channels=8, **SIZE, **FREE, dot=True)]},
    {"layers": [depthwise(channels=7, **SIZE, **FREE, dot=True)]},
    {"layers": [pointwise(channels=8, kernel=(2, 2), pads=(1, 1, 0, 0), outputs=9, **SIZE, **FREE)]},
    {
        "layers": [pointwise(channels=9, outputs=10, **SIZE)],
        "result": MapForm(channels=20, parts=2),
        "rearrangement": Rearrangement(shuffle=True, split=True),
    },
]


@pytest.mark.soak
def test_a_job_of_each_kind():
    check(small(lanes=8, ports=1), QUICK, 2)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("jobs", "changes"),
    [
        (DEPTHWISE, {"generators": 2}),
        (POINTWISE, {"weight_bits": 4, "taps": 1, "generators": 2}),
        (SHUFFLED, {}),
    ],
    ids=["depthwise", "pointwise", "shuffled"],
)
def test_jobs_of_a_kind(jobs, changes):
    check(small(**changes), jobs, 1)
