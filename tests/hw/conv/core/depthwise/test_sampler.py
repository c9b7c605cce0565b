"""The sampler's outputs equal, tap by tap, the definition of a deformable layer."""

import random

import pytest

from hw.conv.core.depthwise.sampler import Sampler
from hw.conv.core.layouts import Offsets
from tests.hw.conv.core.plain import offset_command, small, tap_command
from tests.support.gateware.streams import Side, built, plain, put, simulate

SOAK = pytest.mark.soak


def bilinear(pixel, y, x, rows, columns, fraction, zero):
    """Sample S of the specification; ``pixel`` returns a value, ``y`` and ``x`` are in units of 2^-F."""
    top, left = y >> fraction, x >> fraction
    ly, lx = y & ((1 << fraction) - 1), x & ((1 << fraction) - 1)
    corners = [
        [
            pixel(top + r, left + c) if 0 <= top + r < rows and 0 <= left + c < columns else zero
            for c in range(2)
        ]
        for r in range(2)
    ]
    one = 1 << fraction
    return sum(
        corners[r][c] * (ly if r else one - ly) * (lx if c else one - lx) for r in range(2) for c in range(2)
    ) - (zero << 2 * fraction)


class Layer:
    """A random layer and its expected samples."""

    def __init__(self, config, rng, **sizes):
        self.config = config
        self.zero = rng.randint(-128, 127)
        get = sizes.get
        self.rows, self.columns = get("rows", rng.randint(1, 9)), get("columns", rng.randint(1, 9))
        self.words = get("words", rng.randint(1, 3))
        self.kernel = get("kernel", (rng.randint(1, 3), rng.randint(1, 3)))
        self.stride = get("stride", (rng.randint(1, 2), rng.randint(1, 2)))
        self.dilation = get("dilation", (rng.randint(1, 2), rng.randint(1, 2)))
        reach = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        self.pads = get(
            "pads", [max(0, reach[n] - (self.rows, self.columns)[n]) + rng.randint(0, 2) for n in (0, 1)]
        )
        size = (self.rows, self.columns)
        self.out = [(size[n] + 2 * self.pads[n] - reach[n]) // self.stride[n] + 1 for n in (0, 1)]
        self.offsets = get("offsets", rng.choice(list(Offsets)))
        if self.offsets == Offsets.SQUARE:
            self.kernel = (3, 3) if self.kernel != (1, 1) else (1, 1)
            reach = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
            self.pads = [reach[n] for n in (0, 1)]
            self.out = [(size[n] + 2 * self.pads[n] - reach[n]) // self.stride[n] + 1 for n in (0, 1)]
        self.samples = get("samples", False)
        self.digits = get("digits", 1)
        self.masked = self.offsets == Offsets.FREE and config.mask and rng.random() < 0.5
        slices = self.words * config.generators
        self.groups = get("groups", rng.choice([g for g in range(1, slices + 1) if slices % g == 0]))
        self.bound = get("bound", rng.randint(0, 3))
        # Rows above and below the kernel's that are in the line buffer: all rows that offsets reach, or
        # fewer.
        self.reach, self.gather = get("reach", self.bound), get("gather", False)
        self.split = 0
        self.strip = get("strip", False)
        if self.strip:
            self.split = (self.dilation[0] & -self.dilation[0]).bit_length() - 1
        self.pixels = [
            [[rng.getrandbits(8 * config.lanes) for _ in range(self.words)] for _ in range(self.columns)]
            for _ in range(self.rows)
        ]
        taps = self.kernel[0] * self.kernel[1]
        limit = self.bound << config.fraction_bits
        wide = 2 * limit + 5
        self.given = [
            [
                [
                    [rng.randint(-wide, wide), rng.randint(-wide, wide), rng.randrange(256)]
                    for _ in range(taps)
                ]
                for _ in range(self.groups)
            ]
            for _ in range(self.out[0] * self.out[1])
        ]
        self.limit = limit

    @property
    def steps(self):
        taps = self.kernel[0] * self.kernel[1]
        return taps if self.samples else -(-taps // (1 if self.strip else self.config.taps))

    def fill_words(self):
        return [word for row in self.pixels for pixel in row for word in pixel]

    def entries(self):
        lanes = self.config.taps
        for pixel in self.given:
            if self.offsets == Offsets.SQUARE:
                yield [dict(zip(("dy", "dx", "mask"), pixel[0][0], strict=True))] * lanes
                continue
            for group in pixel:
                per = 1 if self.samples else lanes
                for first in range(0, len(group), per):
                    taps = [
                        dict(zip(("dy", "dx", "mask"), tap, strict=True))
                        for tap in group[first : first + per]
                    ]
                    yield taps + [{"dy": 5, "dx": -7, "mask": 3}] * (lanes - len(taps))

    def clamp(self, value):
        return max(-self.limit, min(self.limit, value))

    def place(self, out_row, out_column, tap, group=0):
        """Return the position of a tap, in units of 2^-F, and its mask."""
        fraction = self.config.fraction_bits
        i, j = divmod(tap, self.kernel[1])
        dy = dx = 0
        mask = None
        taps = self.given[out_row * self.out[1] + out_column]
        if self.offsets == Offsets.FREE:
            dy, dx, mask = taps[group][tap]
            dy, dx = self.clamp(dy), self.clamp(dx)
        elif self.offsets == Offsets.SQUARE:
            distance = self.clamp(taps[0][0][0])
            dy, dx = (i - self.kernel[0] // 2) * distance, (j - self.kernel[1] // 2) * distance
        y = ((out_row * self.stride[0] - self.pads[0] + i * self.dilation[0]) << fraction) + dy
        x = ((out_column * self.stride[1] - self.pads[1] + j * self.dilation[1]) << fraction) + dx
        return y, x, mask

    def sample(self, out_row, out_column, word, slice_, tap):
        """Return the samples of the lanes of a slice, and the mask."""
        config = self.config
        fraction, lanes = config.fraction_bits, config.lanes // config.generators
        slices = self.words * config.generators
        group = (word * config.generators + slice_) * self.groups // slices
        y, x, mask = self.place(out_row, out_column, tap, group)

        def value(lane):
            def pixel(row, column):
                byte = (self.pixels[row][column][word] >> 8 * (slice_ * lanes + lane)) & 0xFF
                return byte - 256 if byte > 127 else byte

            return bilinear(pixel, y, x, self.rows, self.columns, fraction, self.zero)

        return [value(lane) for lane in range(lanes)], mask


def check(config, layers, *, stall=0.0, seed=0, serve=None):
    """Run layers; returns the cycles of their steps.  ``serve`` makes a testbench that answers requests."""
    unit = built(Sampler, config)
    rng = random.Random(f"stall {seed}")
    seen, cycles = [], []

    async def watch(ctx):
        signals = (unit.control, *(p for t in unit.points for p in t), *(w for t in unit.words for w in t))
        cycle = 0
        while True:
            cycle += 1
            values = (await ctx.tick().sample(*signals))[2:]
            if values[0].valid:
                cycles.append(cycle)
                seen.append([plain(v) if not isinstance(v, int) else v for v in values])
            ctx.set(unit.room, rng.random() >= stall)
            ctx.set(unit.loaded, 1)

    sides = {
        "command": Side(unit.command, items=[tap_command(layer) for layer in layers]),
        "i": Side(unit.i, items=[w for layer in layers for w in layer.fill_words()], stall=stall),
    }
    bent = [layer for layer in layers if layer.offsets != Offsets.NONE]
    if bent:
        sides["offset_command"] = Side(unit.offset_command, items=[offset_command(layer) for layer in bent])
        sides["offsets"] = Side(
            unit.offsets, items=[e for layer in bent for e in layer.entries()], stall=stall
        )

    async def finish(ctx):
        idle = 0
        while idle < 60:
            _, _, busy = await ctx.tick().sample(unit.busy)
            idle = 0 if busy else idle + 1

    def feed(side):
        async def bench(ctx):
            await put(ctx, side.stream, side.items, stall=side.stall, seed=seed)

        return bench

    simulate(
        unit,
        *(feed(side) for side in sides.values()),
        finish,
        background=[watch, *([serve(unit)] if serve else [])],
        limit=200_000,
    )
    at = iter(seen)
    for layer in layers:
        (verify_strip if layer.strip else verify)(config, layer, at)
    assert next(at, None) is None
    return cycles


def verify_strip(config, layer, at):
    """The words of three rows, in the order of columns; a result's columns are ``span`` words apart."""
    dilation = layer.dilation[0]
    for out_row in range(layer.out[0]):
        rows = [out_row * layer.stride[0] - layer.pads[0] + n * dilation for n in range(3)]
        history, results = [], []
        while len(results) < layer.out[1] * layer.words:
            control, *rest = next(at)
            window, words = control["window"], rest[config.taps * config.generators :]
            banks = window["banks"]
            assert control["strip"]
            assert control["first"]
            assert window["span"] == dilation * layer.words
            assert [bool(window["rows"] >> n & 1) for n in range(3)] == [0 <= r < layer.rows for r in rows]
            history.append([words[bank] for bank in banks])
            if control["last"]:
                taps = [
                    history[-1 - (2 - c) * window["span"]][r]
                    if window["rows"] >> r & window["columns"] >> c & 1
                    else None
                    for r in range(3)
                    for c in range(3)
                ]
                results.append(taps)
        for n, taps in enumerate(results):
            column, word = divmod(n, layer.words)
            left = column * layer.stride[1] - layer.pads[1]
            expected = [
                layer.pixels[r][c][word] if 0 <= r < layer.rows and 0 <= c < layer.columns else None
                for r in rows
                for c in (left, left + dilation, left + 2 * dilation)
            ]
            assert taps == expected, (out_row, column, word)


def verify(config, layer, at):
    lanes = config.lanes // config.generators
    if True:
        taps = layer.kernel[0] * layer.kernel[1]
        per = 1 if layer.samples else config.taps
        for out_row in range(layer.out[0]):
            for out_column in range(layer.out[1]):
                if layer.samples:
                    order = [
                        (word, step, digit)
                        for digit in range(layer.digits)
                        for step in range(taps)
                        for word in range(layer.words)
                    ]
                else:
                    order = [
                        (word, step, 0) for word in range(layer.words) for step in range(-(-taps // per))
                    ]
                for word, step, digit in order:
                    control, *rest = next(at)
                    points, words = (
                        rest[: config.taps * config.generators],
                        rest[config.taps * config.generators :],
                    )
                    assert control["first"] == (layer.samples or step == 0)
                    assert control["last"] == (layer.samples or step == layer.steps - 1)
                    if layer.samples:
                        assert control["digit"] == digit
                    for t in range(config.taps):
                        tap = step * per + t
                        on = tap < taps and t < per
                        for g in range(config.generators):
                            point = points[t * config.generators + g]
                            assert point["on"] == on
                            if not on:
                                continue
                            expected, mask = layer.sample(out_row, out_column, word, g, tap)
                            if layer.masked:
                                assert point["mask"] == mask
                            for lane in range(lanes):
                                byte = 8 * (g * lanes + lane)
                                corner = {}
                                for r in range(2):
                                    for c in range(2):
                                        bank = 2 * (point["odd_row"] ^ r) + (point["odd_column"] ^ c)
                                        value = (words[4 * t + bank] >> byte) & 0xFF
                                        value = value - 256 if value > 127 else value
                                        corner[r, c] = (
                                            value if point["inside"] >> (2 * r + c) & 1 else layer.zero
                                        )
                                one = 1 << config.fraction_bits
                                ly, lx = point["ly"], point["lx"]
                                sample = sum(
                                    corner[r, c] * (ly if r else one - ly) * (lx if c else one - lx)
                                    for r, c in corner
                                ) - (layer.zero << 2 * config.fraction_bits)
                                assert sample == expected[lane], (out_row, out_column, word, tap, lane)


@pytest.mark.parametrize(
    ("taps", "seed"),
    [(2, 1), *(pytest.param(t, n, marks=SOAK) for t in (1, 2) for n in range(3) if (t, n) != (2, 1))],
)
def test_taps(taps, seed):
    rng = random.Random(f"{taps} {seed}")
    config = small(taps=taps, generators=rng.choice([1, 2]), fraction_bits=rng.choice([0, 3, 5]))
    layers = [Layer(config, rng, samples=rng.random() < 0.3, digits=rng.randint(1, 2)) for _ in range(4)]
    check(config, layers, stall=(0.0, 0.5, 0.9)[seed], seed=seed)


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=SOAK), pytest.param(2, marks=SOAK)])
def test_strips(seed):
    rng = random.Random(f"strip {seed}")
    config = small()
    layers = []
    for dilation in (1, 2, 3, rng.randint(1, 5)):
        pads, stride = [rng.randint(0, 2 * dilation) for _ in range(2)], rng.randint(1, 2)
        if len(layers) == 1:  # every column of the kernel is outside sometimes
            pads, stride = [2 * dilation, 2 * dilation], 1
        layers.append(
            Layer(
                config,
                rng,
                strip=True,
                rows=rng.randint(2 * dilation + 1, 12),
                columns=rng.randint(2 * dilation + 1, 12),
                kernel=(3, 3),
                dilation=(dilation, dilation),
                stride=(stride, stride),
                pads=pads,
                offsets=Offsets.NONE,
                words=rng.randint(1, 2),
            )
        )
    layers.insert(2, Layer(config, rng))
    check(config, layers, stall=(0.0, 0.5, 0.9)[seed], seed=seed)


def test_rows_freed_by_a_layer_do_not_count_for_the_next():
    """The next layer's rows follow each other so fast that all of them fit into the pipeline's latency."""
    config, rng = small(), random.Random(0)
    shape = {"rows": 9, "columns": 1, "words": 1, "kernel": (1, 1), "stride": (1, 1), "pads": [0, 0]}
    check(config, [Layer(config, rng, offsets=Offsets.NONE, **shape) for _ in range(2)])


def test_a_pixel_waits_for_its_offsets():
    """Four entries arrive more slowly than the four steps that take them."""
    config, rng = small(taps=1), random.Random(0)
    shape = {"rows": 4, "columns": 4, "words": 1, "kernel": (2, 2), "stride": (1, 1), "dilation": (1, 1)}
    layer = Layer(config, rng, offsets=Offsets.FREE, groups=1, bound=2, pads=[1, 1], **shape)
    check(config, [layer], stall=0.5)
