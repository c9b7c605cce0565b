# amaranth: UnusedElaboratable=no
"""Conflicts of feeds and others at the banks: the model is the RTL's, and the feeds get their words."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hw.lib.place import InlinePlacer
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.scratchpad.naive import NaiveReaders
from tests.support.gateware.streams import Side, exchange, hash_seed, seeds


@pytest.mark.parametrize("seed", seeds(2, 8))
def test_the_model_is_the_hardware_to_the_cycle(seed):
    shape = GranuleShape(banks=4, rows=8, granule_bits=32, memory="block")
    ports, count = 3, 150
    rng = random.Random(hash_seed(seed, "conflicts"))
    step = rng.choice([1, 4, 7])
    requests = [
        [
            (at * step % 128 if port else rng.randrange(128), rng.choice([15, 15, rng.getrandbits(4)]))
            for at in range(count)
        ]
        for port in range(ports)
    ]
    dut = GranuleScratchpad(shape, InlinePlacer(), readers=ports, writers=1)
    sides = {}
    for n, port in enumerate(dut.read):
        items = [{"address": address, "enable": enable} for address, enable in requests[n]]
        sides[f"request {n}"] = Side(port.request, items=items)
        sides[f"response {n}"] = Side(port.response, count=count)
    exchange(dut, sides)

    model = NaiveReaders(shape, ports)
    cycles = [[] for _ in range(ports)]
    left = [list(each) for each in requests]
    while any(len(each) < count for each in cycles):
        for n, port in enumerate(model.ports):
            if port.valid:
                cycles[n].append(model.now)
        taken = model.cycle([each[0] if each else None for each in left], [True] * ports)
        for each, was in zip(left, taken, strict=True):
            del each[: int(was)]
    assert [sides[f"response {n}"].cycles for n in range(ports)] == cycles


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A convolution in the scratchpad: input, kernel, and the feeds that read it."""

    side: int  #: Rows and columns of the output.
    channels: int
    kernel: int = 3
    stride: int = 1
    feeds: int = 2

    @property
    def tiles(self) -> list[tuple[int, int, int, int]]:
        """Offset, row, the first granule's place in its row of taps, and granules, of each k tile."""
        granules = -(-self.channels // 16)
        row = granules * self.side * self.stride
        run = granules * self.kernel
        return [
            (down * row + at, down, at, min(4, run - at))
            for down in range(self.kernel)
            for at in range(0, run, 4)
        ]

    def requests(self, feed: int, base: int) -> Iterator[tuple[int, int]]:
        """Yield the requests of a feed, again and again."""
        granules = -(-self.channels // 16)
        side = self.side * self.stride
        pads = self.kernel // 2
        pixels = [divmod(at, self.side) for at in range(feed, self.side**2, self.feeds)]
        steps = min(512, self.side**2 // self.feeds)
        while True:
            for first in range(0, len(pixels) - steps + 1, steps):
                for offset, down, at, count in self.tiles:
                    for y, x in pixels[first : first + steps]:
                        row, column = y * self.stride - pads, x * self.stride - pads
                        enable = 0
                        for n in range(count):
                            tap = column + (at + n) // granules
                            enable |= (0 <= row + down < side and 0 <= tap < side) << n
                        yield (base + (row * side + column) * granules + offset) % (1 << 18), enable


def streamed(words: int, start: int, step: int = 1) -> Iterator[tuple[int, int]]:
    """Yield requests of whole words, one after the other."""
    at = 0
    while True:
        yield 4 * ((start + at * step) % words), 15
        at += 1


def shares(layer: Layer, *, cycles: int, seed: int = 0) -> tuple[float, ...]:
    """Return the share of cycles in which the feeds have their words, and words a cycle of the others."""
    shape = GranuleShape()
    rng = random.Random(seed)
    model = NaiveReaders(shape, layer.feeds + 3)
    # Residual: a word a pixel of the last k tile; vector and transfer: a word a cycle.
    rates = [1 / len(layer.tiles), 1.0, 1.0]
    base = rng.randrange(1 << 18)
    users = [
        *(layer.requests(feed, base) for feed in range(layer.feeds)),
        *(streamed(shape.words, rng.randrange(shape.words)) for _ in range(3)),
    ]
    offers = [next(user) for user in users]
    got = [0] * len(users)
    begun = 0
    for _ in range(cycles + 200):
        feeds = model.ports[: layer.feeds]
        both = all(port.valid for port in feeds)
        if model.now == 200:
            begun, got = 0, [0] * len(users)
        begun += both
        for n in range(layer.feeds, len(users)):
            got[n] += model.ports[n].valid
        wish = [True] * layer.feeds + [rng.random() < rate for rate in rates]
        taken = model.cycle(
            [offer if wanted else None for offer, wanted in zip(offers, wish, strict=True)],
            [both] * layer.feeds + [True] * 3,
        )
        offers = [next(user) if was else offer for user, offer, was in zip(users, offers, taken, strict=True)]
    return begun / cycles, *(words / cycles for words in got[layer.feeds :])


LAYERS = [
    (side, channels, kernel, stride)
    for side, channels in [
        (112, 32), (56, 16), (56, 32), (56, 64), (55, 16), (55, 64), (28, 32), (28, 64), (28, 128), (27, 96),
        (14, 64), (14, 128), (14, 256), (13, 48), (7, 128), (7, 512),
    ]
    for kernel, stride in [(3, 1), (1, 1), (3, 2)]
]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize(
    "layer",
    [pytest.param(layer, marks=[pytest.mark.soak] if n % 8 else []) for n, layer in enumerate(LAYERS)],
)
def test_feeds_have_their_words_beside_all_others(layer, seed):
    side, channels, kernel, stride = layer
    for feeds, least in ((1, 1.0), (2, 0.97)):
        found = Layer(side=side, channels=channels, kernel=kernel, stride=stride, feeds=feeds)
        share, *rates = shares(found, cycles=1500, seed=seed)
        assert share >= least
        assert min(rates) > 0  # nobody starves
