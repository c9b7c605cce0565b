"""The array against NumPy: packets that stall, pixels one or two at a time, tiles as early as allowed."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from hw.network.matrix.array import MatrixArray
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.layouts import MatrixStep
from hw.network.matrix.loader import PacketLoader
from tests.hw.network.matrix.tiles import (
    Parameters,
    Sums,
    drawn_bytes,
    drawn_parameters,
    drawn_weights,
    packet,
    word_of,
)
from tests.support.gateware.streams import seeds, set_all, simulate
from tests.support.proofs.mutants import mutant

SMALL = MatrixConfig(inputs=16, columns=8, block_pixels=32, ports=2, port_bits=128)


class Tile:
    """A k tile over the pixels of a block."""

    def __init__(self, rng, config, sums, places, *, first, last, two):
        weights = drawn_weights(rng, config.inputs, sums[0].parameters)
        copies = 2 if two else 1
        self.steps, self.results = [], []
        parameters = Parameters(
            **{name: np.tile(value, copies) for name, value in vars(sums[0].parameters).items()}
        )
        self.words = packet(np.tile(weights, copies), parameters if first else None)
        self.parameters = first
        shift = int(rng.choice([0, *range(8)]))
        for n, place in enumerate(places):
            xs = [drawn_bytes(rng, config.inputs) for _ in range(2)]
            found = [own.add(place, x, weights, shift) for own, x in zip(sums, xs, strict=False)]
            if last:
                self.results.append([result for results in found for result in results])
            step = {"valid": 1, "pixel": place, "first": first, "last": last}
            step |= {"adopt": n == 0, "parameters": first, "two": two, "shift": shift}
            self.steps.append((step, [word_of(x) for x in xs]))


def drawn(rng, config, blocks):
    """Draw blocks of some n tiles, each of some k tiles."""
    tiles = []
    for count in (1, 1, *rng.integers(1, 4, blocks - 2).tolist()):
        two = int(rng.integers(2))
        width = config.columns // 2 if two else config.columns
        parameters = drawn_parameters(rng, width, count, config.inputs)
        sums = [Sums(parameters=parameters) for _ in range(1 + two)]
        pixels = int(rng.choice([1, 3, *rng.integers(4, config.block_pixels + 1, 3)]))
        places = [int(place) for place in rng.permutation(config.block_pixels)[:pixels]]
        for n in range(count):
            ends = {"first": n == 0, "last": n == count - 1}
            tiles.append(Tile(rng, config, sums, places, two=two, **ends))
    return tiles


def run(cls, config, rng, tiles, *, pace):
    """Sweep the tiles; return the results and the cycles in which tiles were adopted.

    ``pace``: the share of cycles in which the packets' stream has a word.
    """
    unit = cls(config)
    words = deque(word for tile in tiles for word in tile.words)
    kinds = deque({"parameters": int(tile.parameters)} for tile in tiles)
    steps = deque(tile.steps for tile in tiles)
    wanted = sum(len(tile.results) for tile in tiles)
    results, adopted = [], []

    async def bench(ctx):
        now, offered = deque(), False
        for cycle in range(4000 + 60 * sum(len(tile.steps) for tile in tiles)):
            if len(results) == wanted:
                break
            if not now and steps and ctx.get(unit.loaded) and rng.random() < max(pace, 0.5):
                now = deque(steps.popleft())
                adopted.append(cycle)
            step, xs = (
                now.popleft() if now else ({}, [word_of(drawn_bytes(rng, config.inputs)) for _ in range(2)])
            )
            idle = dict.fromkeys(MatrixStep(config).members, 0)
            offered = bool(words) and (offered or rng.random() < pace)
            set_all(
                ctx,
                [
                    (unit.step, idle | step),
                    *((unit.x[n], x) for n, x in enumerate(xs)),
                    (unit.packet.valid, offered),
                    (unit.packet.payload, words[0] if offered else int(rng.integers(1 << 62))),
                    (unit.kind.valid, bool(kinds)),
                    (unit.kind.payload, kinds[0] if kinds else {"parameters": 0}),
                ],
            )
            if offered and ctx.get(unit.packet.ready):
                words.popleft()
                offered = False
            if kinds and ctx.get(unit.kind.ready):
                kinds.popleft()
            if ctx.get(unit.valid):
                word = ctx.get(unit.o).to_bytes(2 * config.columns, "little")
                results.append(np.frombuffer(word, np.int16).tolist())
            await ctx.tick()

    simulate(unit, bench)
    return results, adopted


@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize("pace", [1, 0.4])
@pytest.mark.parametrize("inputs", [16, *(pytest.param(n, marks=pytest.mark.soak) for n in (32, 64, 128))])
def test_tiles(inputs, pace, seed):
    rng, config = np.random.default_rng(seed), replace(SMALL, inputs=inputs)
    tiles = drawn(rng, config, 6)
    results, adopted = run(MatrixArray, config, rng, tiles, pace=pace)
    assert results == [result for tile in tiles for result in tile.results]
    if pace == 1:
        for before, after, start, then in zip(tiles, tiles[1:], adopted, adopted[1:], strict=False):
            least = MatrixArray.least_sweep(config, parameters=after.parameters)
            assert then - start == max(len(before.steps), least)


def test_the_default_takes_a_packet_in_its_words_and_one_more():
    config = MatrixConfig()
    assert MatrixArray.least_sweep(config, parameters=False) == 17
    assert MatrixArray.least_sweep(config, parameters=True) == 20


#: Single changes of text: class, text, its replacement.
MUTANTS = {
    "halves exchanged": (MatrixArray, "Mux(two, second", "Mux(~two, second"),
    "words early": (MatrixArray, "_BEAT_TO_CELLS - 1 + late", "_BEAT_TO_CELLS - 2 + late"),
    "results late": (MatrixArray, "results, self.latency(config)", "results, self.latency(config) + 1"),
    "parameters at once": (PacketLoader, "since + 1 >= self._wait - 1", "1"),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name, monkeypatch):
    cls, old, new = MUTANTS[name]
    changed = mutant(cls, old, new)
    if cls is PacketLoader:
        monkeypatch.setattr("hw.network.matrix.array.PacketLoader", changed)
    rng = np.random.default_rng(0)
    tiles = drawn(rng, SMALL, 4)
    results, _ = run(MatrixArray if cls is PacketLoader else changed, SMALL, rng, tiles, pace=1)
    assert results != [result for tile in tiles for result in tile.results]
