"""Small engines of many shapes: each parameter that gates depend on has several values."""

from dataclasses import replace

import numpy as np

from hw.conv.config import ConvConfig
from sim.engines.conv.cases import SMALL

_PLAIN = replace(SMALL, ports=1, gather_words=0, dot_words=0, bank_words=64, block_words=128)

#: The first shares the simulator of `test_engines`.
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
#: Those of `make test`.
TESTED = ("all",)


def drawn(seed):
    """Draw a small engine, every parameter for itself; its RAMs are the small ones that its jobs can fill."""
    rng = np.random.default_rng([7, seed])

    def power(low, high):
        return 2 ** int(rng.integers(low.bit_length() - 1, high.bit_length()))

    lanes = power(8, 32)
    return ConvConfig(
        lanes=lanes,
        taps=power(1, 2),
        strip=bool(rng.random() < 0.8),
        strip_words=power(16, 64),
        generators=power(1, lanes // 8),
        bank_words=power(64, 256),
        memory="block",
        fraction_bits=int(rng.integers(0, 9)),
        mask=bool(rng.random() < 0.5),
        dot_words=int(rng.choice([0, 16, 64])),
        offset_entries=power(64, 512),
        tap_words=power(64, 128),
        inputs=power(8, lanes),
        outputs=power(8, lanes),
        weight_bits=int(rng.choice([4, 8])),
        block_pixels=power(16, 64),
        block_words=power(64, 256),
        bypass_words=power(64, 128),
        samples=bool(rng.random() < 0.8),
        ports=power(1, lanes // 8),
        port_bits=power(128, 512),
        gather_words=int(rng.choice([0, 64])),
    )
