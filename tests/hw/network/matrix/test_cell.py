"""A cell against NumPy: tiles are swapped as early as allowed, each n tile with its own parameters."""

import numpy as np
import pytest

from hw.network.matrix.cell import Chains, MatrixCell
from hw.network.matrix.config import BEAT_INPUTS, MatrixConfig
from tests.hw.network.matrix.tiles import (
    Sums,
    beats,
    drawn_bytes,
    drawn_parameters,
    drawn_weights,
    word_of,
)
from tests.support.gateware.play import play
from tests.support.gateware.streams import seeds
from tests.support.proofs.mutants import mutant

CONTROL = ("read", "first", "parameters", "shift", "write", "pixel")


def config(inputs):
    return MatrixConfig(inputs=inputs, columns=4, block_pixels=64, ports=1, port_bits=128)


class Played:
    """The inputs of each cycle, and the results expected of them."""

    def __init__(self, unit, shape, rng):
        self.unit, self.config, self.rng = unit, shape, rng
        self.chains = Chains(shape.inputs)
        self.cycles, self.expected = [], {}
        self.loaded = 0  # the first cycle after the beats so far

    def at(self, cycle, **fields):
        while len(self.cycles) <= cycle:
            x = drawn_bytes(self.rng, self.config.inputs).tolist()
            idle = {"x": x, "adopt": 0, "strobes": 0, "beat": int(self.rng.integers(1 << 63))}
            control = dict.fromkeys(CONTROL, 0)
            self.cycles.append(idle | control)
        self.cycles[cycle] |= fields

    def load(self, earliest, weights, parameters):
        """Put a packet's beats on the cell; return the first cycle in which the tile may be adopted."""
        packet, lanes = beats(weights, parameters), self.chains.lane
        inputs, pace = self.config.inputs, self.rng.choice([0, 0.5])
        lead = max(lanes(inputs - BEAT_INPUTS * (n + 1)) - n for n in range(self.config.weight_beats))
        ready = cycle = max(earliest + lead, self.loaded + 1)
        for n, beat in enumerate(packet):
            cycle += self.rng.geometric(1 - pace) - 1
            if n >= self.config.weight_beats:
                cycle = max(cycle, earliest + MatrixCell.parameters_at(self.config))
            self.at(cycle, beat=beat)
            self.at(cycle - 1, strobes=1 << n)
            if n < self.config.weight_beats:
                ready = max(ready, cycle + 1 - lanes(inputs - BEAT_INPUTS * n - 1))
            else:  # the bias is taken first
                ready = max(ready, cycle + 2 - MatrixCell.dot_at(self.config))
            self.loaded = cycle = cycle + 1
        return ready

    def sweep(self, start, places, weights, sums, *, first, shift):
        """Sweep a tile from ``start`` on."""
        config, lanes = self.config, range(self.chains.lanes)
        for lane in lanes:
            before = start + lane - 1
            self.at(before, adopt=1 << lane | self.cycles[before]["adopt"])
        if first:
            self.at(start + MatrixCell.dot_at(config) - 2, parameters=1)
        for n, place in enumerate(places):
            x = drawn_bytes(self.rng, config.inputs)
            for i, value in enumerate(x):
                self.at(start + n + self.chains.lane(i))
                self.cycles[start + n + self.chains.lane(i)]["x"][i] = int(value)
            self.at(start + n + MatrixCell.read_at(config), read=place, first=first)
            self.at(start + n + MatrixCell.read_at(config) - 1, shift=shift)
            self.at(start + n + MatrixCell.sum_at(config), write=1, pixel=place)
            self.expected[start + n + MatrixCell.latency(config)] = sums.add(place, x, weights, shift)

    def run(self):
        """Return the results found in the cycles in which some are expected."""
        unit, control = self.unit, self.unit.control
        own = {name: getattr(control, name) for name in CONTROL}
        signals = own | {name: getattr(unit, name) for name in ("x", "adopt", "strobes", "beat")}
        self.at(max(self.expected))
        flat = [given | {"x": word_of(given["x"])} for given in self.cycles]
        cycles = [[(signals[name], value) for name, value in given.items()] for given in flat]
        found = play(unit, cycles, list(unit.o), 0)
        return {cycle: found[cycle] for cycle in self.expected}


def drawn(cls, seed, inputs, blocks):
    """Draw n tiles of some k tiles each, over blocks of some pixels."""
    rng = np.random.default_rng(seed)
    shape = config(inputs)
    played = Played(cls(shape), shape, rng)
    start = before = 0
    for _ in range(blocks):
        tiles, pixels = int(rng.integers(1, 4)), int(rng.choice([1, 2, *rng.integers(3, 40, 4)]))
        parameters = drawn_parameters(rng, 2, tiles, inputs)
        sums = Sums(parameters=parameters)
        places = [int(place) for place in rng.permutation(shape.block_pixels)[:pixels]]
        for n in range(tiles):
            weights = drawn_weights(rng, inputs, parameters)
            ready = played.load(start, weights, None if n else parameters)
            start = max(start + before, start + MatrixCell.INTERVAL, ready) + int(rng.choice([0, 0, 5]))
            played.at(start + played.chains.lanes)
            before = pixels
            shift = int(rng.choice([0, *range(8)]))
            played.sweep(start, places, weights, sums, first=n == 0, shift=shift)
    return played


@pytest.mark.parametrize("seed", seeds(1, 12))
@pytest.mark.parametrize("inputs", [16, 64])
def test_tiles(inputs, seed):
    played = drawn(MatrixCell, seed, inputs, 9)
    assert played.run() == played.expected
    assert len({result for results in played.expected.values() for result in results}) > 60


#: Single changes of text.
MUTANTS = {
    "parameters at once": ("with m.If(begins[1 + at])", "with m.If(begins[1])"),
    "bias late": ("with m.If(begins[0])", "with m.If(begins[1])"),
    "multiplier late": ("load=begins[2 + FACTOR_AT]", "load=begins[3 + FACTOR_AT]"),
    "bias in every tile": ("Mux(first, biases[n], before)", "before + biases[n]"),
    "carry lost": ("with_carry(dot, base, carry)", "dot + base"),
    "carry shifted out": ("fill.replicate(places)", "Const(0, places)"),
    "far carry shifted out": ("late_fill.replicate(steps)", "Const(0, steps)"),
    "shift at once": ("Mux(late_coarse,", "Mux(coarse,"),
    "columns exchanged": ("[(low, None), (high, carry)]", "[(high, carry), (low, None)]"),
    "adopted by the first lane": ("load=adopt[chains.lane(i)]", "load=adopt[0]"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name):
    played = drawn(mutant(MatrixCell, *MUTANTS[name]), 0, 16, 12)
    assert played.run() != played.expected
