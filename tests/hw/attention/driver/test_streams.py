"""The streams of a job for a core alone, beside the loops of the plain model, and through the gates."""

import numpy as np
import pytest

from hw.attention.driver.formats import Output, Scaling
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.mask import Mask
from hw.attention.driver.streams import attention_streams
from hw.errors import InputError
from tests.hw.attention.core.feeds import CoreJob, feed
from tests.hw.attention.plain import random_job, small
from tests.support.gateware.streams import seeds


def integers(config, given):
    """Return a plain job as the driver takes it."""
    job = given.job
    mask = Mask(
        causal=job.causal,
        window=job.window if job.windowed else 0,
        bitmap=job.bits,
        tile_queries=config.rows,
        tile_keys=config.tile_span,
    )
    return IntegerJob(
        q=given.q,
        k=given.k,
        v=given.v,
        scale=Scaling(multiplier=job.multiplier, shift=job.shift),
        output=Output(kind=config.output, **job.scale),
        mask=mask,
        cap=job.cap if config.logit_cap else 0,
        slopes=None if job.slope is None else tuple(job.slope),
    )


@pytest.mark.parametrize("seed", seeds(30, 300))
def test_streams_are_those_of_the_plain_model(seed):
    rng = np.random.default_rng(seed)
    config = small(
        rows=int(rng.integers(1, 5)),
        lanes=16,
        folds=int(rng.integers(1, 3)),
        streams=int(rng.choice([1, 2, 4])),
        output=str(rng.choice(["int8", "int16", "bfloat16"])),
        logit_cap=bool(rng.random() < 0.5),
        alibi=bool(rng.random() < 0.5),
    )
    given = CoreJob.random(rng, random_job(rng, config, pack=1))
    found = attention_streams(config, integers(config, given))
    expected = {f"i_{name}": items for name, items in feed(config, [given], rng).items()}
    for s in range(config.streams):  # the core ignores keys and values of dummy tiles
        dummies = [bool(tile["dummy"]) for tile in expected[f"i_tile_{s}"] for _ in range(count(tile, "key"))]
        blank(expected[f"i_key_{s}"], found[f"i_key_{s}"], dummies)
        dummies = [bool(t["dummy"]) for t in expected[f"i_tile_{s}"] for _ in range(count(t, "value"))]
        blank(expected[f"i_value_{s}"], found[f"i_value_{s}"], dummies)
    assert found == expected


def count(tile, kind):
    """Return the parts of a tile."""
    return (tile["last_index"] + 1) * (tile[f"last_{kind}_part"] + 1)


def blank(expected, found, dummies):
    assert len(dummies) == len(expected)
    for at, dummy in enumerate(dummies):
        if dummy:
            expected[at] = found[at]


def some(**changes):
    fields = {name: np.ones((1, 3, 16), np.int8) for name in "qkv"}
    fields |= {"scale": Scaling(multiplier=1, shift=1), "output": Output()}
    return IntegerJob(**(fields | changes))


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            some(q=np.ones((1, 3, 24), np.int8), k=np.ones((1, 3, 24), np.int8)),
            "elements of a query must be a multiple of 16 up to 32, not 24",
        ),
        (
            some(v=np.ones((1, 3, 48), np.int8)),
            "elements of a value must be a multiple of 16 up to 32, not 48",
        ),
        (
            some(output=Output(kind="int8", multiplier=70_000, shift=20)),
            "format of results must be int16, not 'int8'",
        ),
        (some(cap=1), "cap must be 0 for a core without logit_cap, not 1"),
        (some(slopes=(1,)), "slopes must be None for a core without alibi, not (1,)"),
        (
            some(mask=Mask(bitmap=np.ones((3, 1), np.bool_), tile_keys=16)),
            "tile of the bitmap must be (2, 16), not (1, 16)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_job_that_the_core_cannot_do_is_refused(job, message):
    config = small(rows=2, lanes=16, folds=2)
    with pytest.raises(InputError) as raised:
        attention_streams(config, job)
    assert str(raised.value) == message
