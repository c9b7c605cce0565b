"""Small engines of many shapes: each parameter that gates depend on has several values."""

import random
from dataclasses import replace

from hw.conv.config import ConvConfig
from sim.engines.conv.cases import SMALL

_PLAIN = replace(SMALL, ports=1, gather_words=0, dot_words=0, bank_words=64, block_words=128)

#: Those of `make test` first.
CONFIGS = {
    "all": SMALL,
    "slices": replace(_PLAIN, taps=1, weight_bits=4, generators=2, fraction_bits=3, outputs=16),
    "lanes": replace(
        _PLAIN, lanes=8, fraction_bits=8, weight_bits=4, mask=False, dot_words=64, offset_entries=256
    ),
    "gathering": replace(
        _PLAIN,
        taps=1,
        fraction_bits=3,
        weight_bits=4,
        generators=2,
        outputs=16,
        dot_words=64,
        gather_words=64,
    ),
    "wide": replace(
        _PLAIN, lanes=32, generators=4, fraction_bits=8, inputs=16, ports=2, port_bits=256, strip_words=32
    ),
    "whole pixels": replace(_PLAIN, fraction_bits=0, mask=False, samples=False, strip=False, gather_words=64),
    "board": replace(
        _PLAIN, taps=1, strip=False, mask=False, inputs=16, outputs=16, bank_words=128, offset_entries=64
    ),
}
TESTED = ("all", "slices", "lanes")


def random_config(seed):
    """Draw a small engine of any shape."""
    rng = random.Random(seed)
    lanes = rng.choice([8, 16, 32])
    inputs, outputs = (rng.choice([size for size in (8, 16, 32) if size <= lanes]) for _ in range(2))
    return ConvConfig(
        lanes=lanes,
        taps=rng.choice([1, 2]),
        strip=rng.random() < 0.7,
        strip_words=rng.choice([16, 32]),
        generators=rng.choice([n for n in (1, 2, 4) if n <= lanes // 8]),
        bank_words=rng.choice([64, 128, 256, 1024]),
        memory="block",
        fraction_bits=rng.choice([0, 1, 3, 5, 8]),
        mask=rng.random() < 0.7,
        dot_words=rng.choice([0, 64, 256]),
        offset_entries=rng.choice([128, 256, 512, 1024]),
        tap_words=rng.choice([64, 128, 256]),
        inputs=inputs,
        outputs=outputs,
        weight_bits=rng.choice([4, 8]),
        block_pixels=rng.choice([16, 32, 64]),
        block_words=rng.choice([128, 256, 1024]),
        bypass_words=rng.choice([64, 128, 256]),
        samples=rng.random() < 0.8,
        ports=rng.choice([n for n in (1, 2, 4) if n <= lanes // 8]),
        port_bits=rng.choice([128, 256, 512]),
        gather_words=rng.choice([0, 64]),
    )
