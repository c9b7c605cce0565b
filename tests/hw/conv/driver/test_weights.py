"""Tiles have every product of a layer once, and no other."""

import random
from collections import Counter

import pytest

from hw.conv.driver.form import MapForm
from hw.conv.driver.weights import PointLanes, tiles
from tests.support.conv.jobs import small


@pytest.mark.parametrize("seed", range(12))
def test_every_product_once(seed):
    rng = random.Random(seed)
    config = small(outputs=rng.choice([8, 16]), generators=2)
    group = rng.choice([1, 2, 4])
    forms = [
        MapForm(channels=group * rng.randint(1, 12) * 2, **rng.choice([{}, {"parts": 2}, {"groups": 2}]))
        for _ in range(2)
    ]
    lanes = PointLanes(
        inputs=forms[0].lanes(config),
        outputs=forms[1].lanes(config),
        words=forms[0].words(config),
        group=group,
        taps=rng.choice([1, 9]),
        digits=rng.choice([1, 3]),
    )
    found = tiles(config, lanes)
    products = Counter()
    for tile in found:
        assert tile.word == (tile.digit * lanes.taps + tile.tap) * lanes.words + tile.inputs * 8 // 16
        ours = [c for c, lane in enumerate(lanes.inputs) if lane // config.inputs == tile.inputs]
        theirs = [e for e, lane in enumerate(lanes.outputs) if lane // config.outputs == tile.outputs]
        pairs = [
            (e, c, tile.tap, tile.digit)
            for e in theirs
            for c in ours
            if e * group // forms[1].channels == c * group // forms[0].channels
        ]
        assert pairs, "a tile of zeros"
        products.update(pairs)
    size = forms[0].channels * forms[1].channels // group * lanes.taps * lanes.digits
    assert len(products) == size
    assert set(products.values()) == {1}
    for earlier, later in zip([None, *found], [*found, None], strict=True):
        changes = earlier is None or later is None or earlier.outputs != later.outputs
        assert earlier is None or earlier.last == changes
        assert later is None or later.first == changes
    assert [tile.ends for tile in found] == [False] * (len(found) - 1) + [True]
