"""Small engines of many shapes: each parameter that gates depend on has several values."""

from dataclasses import replace

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
