"""Labels of draws against the golden map's arithmetic; draws lie at every border."""

import random

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.position.labels import Labels
from sim.golden.oram.map import ObliviousMap
from tests.support.gateware.streams import plain, simulate


def borders(config, rng):
    """Draw 64 bits near the border of a label or of its kind, and random ones."""
    label = rng.choice([0, config.hbm_labels, config.labels, rng.randrange(config.labels)])
    return max(0, min(label * (1 << 64) // config.labels + rng.choice([-1, 0, 1]), (1 << 64) - 1))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"touch": "both", "pad": "always"},
        {"pad": "always", "log_n": 30, "alpha": 0.02, "items_per_label": 2},
    ],
)
def test_labels_and_dummies(changes):
    config = OramConfig(**changes)
    rng = random.Random(3)
    drawn = [
        [borders(config, rng) | rng.choice([borders(config, rng), (1 << 64) - 1]) << 64]
        + [rng.getrandbits(128)] * (config.draws - 1)
        for _ in range(60)
    ]
    dut, found = Labels(config), []

    async def play(ctx):
        for draw in [*drawn, *[drawn[0]] * Labels.LATENCY]:
            ctx.set(dut.draw, draw)
            await ctx.tick()
            found.append([plain(ctx.get(getattr(dut, name))) for name in ("fresh", "miss", "dummy")])

    simulate(dut, play)
    model = ObliviousMap(config, np.array, np.array)
    labels = config.label_count
    for draw, result in zip(drawn, found[Labels.LATENCY - 1 :], strict=False):
        halves = [part for block in draw for part in (block & (1 << 64) - 1, block >> 64)]
        records = [model.record_of(half) for half in halves]
        pages = [(half & (1 << 32) - 1) * config.host_pages >> 32 for half in halves[labels:]]
        padded = config.pad == "always"
        assert result == [records[:labels], records[labels:], pages if padded else [0] * labels]
