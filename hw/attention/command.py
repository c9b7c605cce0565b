"""What the core is told, and what its two sides tell each other."""

from __future__ import annotations

from amaranth.lib import data

from hw.attention.config import FRACTION_BITS, MULTIPLIER_BITS, SHIFT_BITS, AttentionConfig

#: Bits of a number of keys, 1 ... 65536.
KEYS_BITS = 17


class Command(data.StructLayout):
    """One query tile against all keys of its head.

    Members
    -------
    keys : 17
        Keys (and values) that follow on their streams, 1 ... 65536.
    rows
        Queries that follow on theirs, 1 ... R; the other rows of the array idle.
    score_multiplier : 17, score_shift : 6
        Raw score to log2 units, see ``docs/attention.md``.
    output_fraction : 4
        Fraction bits of the results.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "keys": KEYS_BITS,
                "rows": range(config.rows + 1),
                "score_multiplier": MULTIPLIER_BITS,
                "score_shift": SHIFT_BITS,
                "output_fraction": FRACTION_BITS,
            }
        )


class Tile(data.StructLayout):
    """A tile of keys whose logits and maximum lie in the buffer.

    Members
    -------
    last_index
        Index of its last key: one less than its keys.
    closes : 1
        It is the last of its query tile.
    rows, output_fraction
        Of its command.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "last_index": config.index_bits,
                "closes": 1,
                "rows": range(config.rows + 1),
                "output_fraction": FRACTION_BITS,
            }
        )


class Place(data.StructLayout):
    """How far the reading side is: tiles read to their end (modulo 4), and keys read of the next one."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"tile": 2, "index": config.index_bits})
