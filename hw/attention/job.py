"""What a launch says, in memory's terms."""

from __future__ import annotations

from amaranth.lib import data

from hw.attention.config import FRACTION_BITS, MULTIPLIER_BITS, SHIFT_BITS, AttentionConfig

#: Bits of a byte address, and of a count in a launch.
ADDRESS_BITS = 64
COUNT_BITS = 32


class Job(data.StructLayout):
    """Attention of several heads.

    Members
    -------
    q : 64
        Address of int8 ``[heads, queries, D]``.
    k, v : P x 64
        Addresses of the slices of keys and of values: slice p is int8
        ``[heads / kv_group, keys, D / P]``, elements ``p * D / P`` and on of each row.
    o : 64
        Address of int16 ``[heads, queries, D]``, which is written.
    queries, keys, heads, kv_group : 32
        Counts; query heads ``h`` with the same ``h // kv_group`` share keys and values.
    score_multiplier, score_shift, output_fraction
        See `hw.attention.command.Command`.
    """

    def __init__(self, config: AttentionConfig) -> None:
        slices = data.ArrayLayout(ADDRESS_BITS, config.ports_per_stream)
        super().__init__(
            {
                "q": ADDRESS_BITS,
                "k": slices,
                "v": slices,
                "o": ADDRESS_BITS,
                "queries": COUNT_BITS,
                "keys": COUNT_BITS,
                "heads": COUNT_BITS,
                "kv_group": COUNT_BITS,
                "score_multiplier": MULTIPLIER_BITS,
                "score_shift": SHIFT_BITS,
                "output_fraction": FRACTION_BITS,
            }
        )


class Pass(data.StructLayout):
    """One query tile's way past all keys of its head.

    Members
    -------
    rows
        Queries of the tile, 1 ... R.
    query_offset : 64
        First element of the tile in ``q`` and in ``o``.
    slice_offset : 64
        First byte of the head in a slice of ``k`` and ``v``.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "rows": range(config.rows + 1),
                "query_offset": ADDRESS_BITS,
                "slice_offset": ADDRESS_BITS,
            }
        )
