# amaranth: UnusedElaboratable=no
"""The sweep: every step of every command in order, each as soon as pixel, weights and room are there."""

import random
from dataclasses import dataclass

import pytest

from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.sweep import MatrixSweep
from tests.support.gateware.streams import seeds, set_all, simulate

CONFIG = MatrixConfig(inputs=16, columns=8, block_pixels=32, ports=1, port_bits=128)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, as plain numbers."""

    steps: int
    last_steps: int
    blocks: int
    n_tiles: int
    k_tiles: int
    two: int

    def payload(self):
        names = ("steps", "last_steps", "blocks", "n_tiles")
        order = {name: getattr(self, name) for name in names}
        return {"order": order, "k_tiles": self.k_tiles, "two": self.two}

    def wanted(self):
        """Return its steps: pixel, first, last, adopt, parameters, two."""
        found = []
        for block in range(self.blocks):
            steps = self.last_steps if block == self.blocks - 1 else self.steps
            for _ in range(self.n_tiles):
                for k in range(self.k_tiles):
                    first, last = int(k == 0), int(k == self.k_tiles - 1)
                    found += [(n, first, last, int(n == 0), first, self.two) for n in range(steps)]
        return found


def drawn(rng):
    steps = rng.randint(1, 5)
    return Command(
        steps=steps,
        last_steps=rng.randint(1, 5),
        blocks=rng.randint(1, 3),
        n_tiles=rng.randint(1, 3),
        k_tiles=rng.randint(1, 3),
        two=rng.randint(0, 1),
    )


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_steps_in_order_as_early_as_they_may(stall, seed):
    dut = MatrixSweep(CONFIG)
    rng = random.Random(seed)
    commands = [drawn(rng) for _ in range(12)]
    wanted = [step for command in commands for step in command.wanted()]
    found, causes = [], {"waits_pixels": 0, "waits_weights": 0, "waits_room": 0}

    async def bench(ctx):
        waiting, left, cycles = list(commands), 0, 0
        while len(found) < len(wanted):
            step = wanted[len(found)]
            words, loaded, room = ([rng.random() >= stall for _ in range(count)] for count in (2, 1, 1))
            set_all(
                ctx,
                [
                    (dut.command.valid, bool(waiting)),
                    *((word.valid, words[n]) for n, word in enumerate(dut.words)),
                    (dut.loaded, loaded[0]),
                    (dut.room, room[0]),
                    (dut.shift, shift := rng.randrange(8)),
                ],
            )
            if waiting:
                ctx.set(dut.command.payload, waiting[0].payload())
            _, _, last, adopt, _, two = step
            pixels = words[0] and (words[1] or not two)
            weights, space = loaded[0] or not adopt, room[0] or not last
            fires = left > 0 and pixels and weights and space
            free = left == fires
            assert ctx.get(dut.command.ready) == free
            assert ctx.get(dut.busy) == ctx.get(dut.step.valid) == ctx.get(dut.words[0].ready) == fires
            assert ctx.get(dut.words[1].ready) == (fires and two)
            assert ctx.get(dut.taken) == (fires and last)
            cause = "waits_pixels" if not pixels else "waits_weights" if not weights else "waits_room"
            for name in causes:
                assert ctx.get(getattr(dut, name)) == (left > 0 and not fires and name == cause)
                causes[name] += ctx.get(getattr(dut, name))
            if fires:
                now = ctx.get(dut.step)
                assert now.shift == shift
                names = ("pixel", "first", "last", "adopt", "parameters", "two")
                found.append(tuple(now[name] for name in names))
                left -= 1
            if free and waiting:
                left = len(waiting.pop(0).wanted())
            assert ctx.get(dut.step.adopt) == (fires and adopt)
            cycles += 1
            await ctx.tick()
        if not stall:
            assert cycles == len(wanted) + 1

    simulate(dut, bench)
    assert found == wanted
    assert all((count > 0) == (stall > 0) for count in causes.values())
