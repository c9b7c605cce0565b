"""Samples outside the line buffer are read from memory, each neighbour once, at any timing."""

import random
from collections import deque

import pytest

from hw.conv.core.layouts import Offsets
from tests.hw.conv.core.depthwise.test_sampler import Layer, check
from tests.hw.conv.core.plain import row_slots, small
from tests.support.gateware.streams import plain


def far(config, rng, **sizes):
    """A layer whose offsets reach beyond its window of rows."""
    bound = rng.randint(2, 9)
    return Layer(
        config,
        rng,
        **{
            "offsets": Offsets.FREE,
            "groups": 1,
            "gather": True,
            "rows": rng.randint(3, 9),
            "columns": rng.randint(1, 6),
            "bound": bound,
            "reach": rng.randint(-1, bound),
            "samples": rng.random() < 0.4,
            "digits": rng.randint(1, 2),
            **sizes,
        },
    )


def requests(layer):
    """Return the neighbours that no row of the window has, by the definition, then the end."""
    _, need, free = row_slots(layer)
    one = 1 << layer.config.fraction_bits
    for out_row in range(layer.out[0]):
        low, high = (line + out_row * layer.stride[0] for line in (free, need))
        for out_column in range(layer.out[1]):
            for tap in range(layer.kernel[0] * layer.kernel[1]):
                y, x, _ = layer.place(out_row, out_column, tap)
                rows = [r for r in (y // one, -(-y // one)) if 0 <= r < layer.rows]
                columns = [c for c in (x // one, -(-x // one)) if 0 <= c < layer.columns]
                rows, columns = sorted(set(rows)), sorted(set(columns))
                if columns and any(not low <= r < high for r in rows):
                    for r in rows:
                        yield {"row": r, "column": columns[0], "two": len(columns) - 1, "ends": 0}
    yield {"row": 0, "column": 0, "two": 0, "ends": 1}


class Memory:
    """Answers the requests of layers in order, after a delay."""

    def __init__(self, layers, *, stall=0.0, latency=(1, 20), seed=0):
        self.layers = [layer for layer in layers if layer.gather]
        self.seen = [[] for _ in self.layers]
        self.stall, self.latency, self.rng = stall, latency, random.Random(f"memory {seed}")
        self.words, self.at = deque(), 0

    def ask(self, request, cycle):
        layer = self.layers[self.at]
        self.seen[self.at].append(request)
        if request["ends"]:
            self.at += 1
            return
        due = cycle + self.rng.randint(*self.latency)
        for column in range(request["column"], request["column"] + 1 + request["two"]):
            self.words += [(due, word) for word in layer.pixels[request["row"]][column]]

    def serve(self, unit):
        async def bench(ctx):
            offered, waited, cycle = False, 0, 0
            while True:
                ready = self.rng.random() >= self.stall
                ctx.set(unit.requests.ready, ready)
                if not offered and self.words and self.words[0][0] <= cycle:
                    offered = self.rng.random() >= self.stall
                ctx.set(unit.gathered.valid, offered)
                ctx.set(unit.gathered.payload, self.words[0][1] if offered else 0)
                _, _, valid, payload, taken = await ctx.tick().sample(
                    unit.requests.valid, unit.requests.payload, unit.gathered.ready
                )
                if offered:
                    # Words wait only until the pixels before them are counted.
                    waited = 0 if taken else waited + 1
                    assert waited < 70
                if offered and taken:
                    self.words.popleft()
                    offered = False
                if ready and valid:
                    self.ask(plain(payload), cycle)
                cycle += 1

        return bench


def run(config, layers, **timing):
    memory = Memory(layers, **timing)
    cycles = check(
        config, layers, stall=timing.get("stall", 0.0), seed=timing.get("seed", 0), serve=memory.serve
    )
    assert memory.seen == [list(requests(layer)) for layer in memory.layers]
    return cycles, memory


@pytest.mark.parametrize(
    ("taps", "seed"),
    [(1, 1), (2, 0), *(pytest.param(t, n, marks=pytest.mark.soak) for t in (1, 2) for n in range(2, 8))],
)
def test_random(taps, seed):
    rng = random.Random(f"gather {taps} {seed}")
    config = small(
        taps=taps, generators=rng.choice([1, 2]), fraction_bits=rng.choice([0, 2, 5]), gather_words=64
    )
    layers = []
    while not any(
        len(list(requests(layer))) > 1 for layer in layers
    ):  # a pixel without a miss takes one request
        layers = [far(config, rng) for _ in range(3)]
    layers.insert(rng.randint(0, 2), Layer(config, rng))
    _, memory = run(
        config,
        layers,
        stall=(0.0, 0.5, 0.8)[seed % 3],
        latency=((1, 5), (1, 40), (100, 200))[seed % 3],
        seed=seed,
    )
    assert sum(map(len, memory.seen)) > len(memory.seen)


@pytest.mark.parametrize("taps", [1, 2])
def test_nothing_missing_costs_nothing(taps):
    """``ceil(9 / T)`` cycles a word and one a row, as without a gather; two layers."""
    config = small(taps=taps, lanes=8, bank_words=64, gather_words=64)
    rng = random.Random(taps)
    shape = {"rows": 6, "columns": 6, "words": 1, "kernel": (3, 3), "stride": (1, 1), "dilation": (1, 1),
             "pads": [1, 1], "samples": False, "bound": 2, "reach": 2}  # fmt: skip
    layer = far(config, rng, **shape)
    cycles, memory = run(config, [layer])
    assert len(memory.seen[0]) == 1
    steps = -(-9 // taps)
    assert len(cycles) == 36 * steps
    assert cycles[-1] - cycles[0] == 36 * steps - 1 + layer.out[0] - 1


def test_a_pixel_may_fill_the_buffer():
    """Of 49 taps all are in the map and none in the window: 64 places have no room for the next pixel."""
    config = small(taps=1, lanes=8, gather_words=64)
    layer = far(config, random.Random(7), rows=7, columns=7, words=1, kernel=(7, 7), stride=(3, 3),
                pads=[3, 3], dilation=(1, 1), samples=False, reach=-5)  # fmt: skip
    layer.given = [[[[0, 0, 1]] * 49] for _ in layer.given]
    _, memory = run(config, [layer])
    assert len(memory.seen[0]) == 4 * 4 * 4 + 4 * 4 * 7 + 7 * 7 + 1
