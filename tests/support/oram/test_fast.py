"""The compiled form reveals and touches the same as the whole map, and leaves the same lists."""

import numpy as np
import pytest

from hw.oram.core.layouts import Code
from sim.golden.oram.map import Command
from tests.sim.golden.oram.test_map import VARIANTS
from tests.support.oram.fast import FastMap
from tests.support.oram.workloads import draws, keys_of, quick_map


@pytest.mark.sample(6)
@pytest.mark.parametrize("workload", ["uniform", "scan", "burst"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_the_map(variant, workload):
    config = VARIANTS[variant]
    rng = np.random.default_rng(1)
    count, keys = 2000, config.keys * 7 // 8
    codes = rng.choice([0, 1, 2, 3, 4], size=count, p=[0.1, 0.3, 0.4, 0.1, 0.1])
    codes[:keys], chosen = Code.LOAD, keys_of(workload, rng, count, keys)
    whole = quick_map(config)
    outcomes = whole.run(
        Command(code, key, bytes(8)) for code, key in zip(codes.tolist(), chosen.tolist(), strict=True)
    )
    fast = FastMap(config, keys)
    blocks = draws(config, 0)(np.arange(count))
    labels, pages = (
        np.concatenate(parts)
        for parts in zip(
            *(
                fast.run(codes[part], chosen[part], blocks[part])
                for part in (slice(0, 700), slice(700, count))
            ),
            strict=True,
        )
    )
    for outcome, label, page in zip(outcomes, labels.tolist(), pages.tolist(), strict=True):
        assert outcome.labels == (() if label[0] < 0 else tuple(label))
        assert outcome.pages == [at for at in page if at >= 0]
    found = [[-1 if item is None else item.key for item in whole.records[r]] for r in range(config.records)]
    np.testing.assert_array_equal(fast.state.lists, found)
    found = [[-1 if item is None else item.key for item in whole.pages[p]] for p in range(config.host_pages)]
    np.testing.assert_array_equal(fast.state.pages, found)
    assert fast.state.overflow.tolist() == [
        [entry[0], entry[1].key] if entry else [-1, -1] for entry in whole.overflow
    ]
