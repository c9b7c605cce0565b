"""The fields of a job, as in registers or in a descriptor in memory."""

from typing import Any

from amaranth.lib import data

from hw.attention.config import CAP_BITS, KEY_BITS, MULTIPLIER_BITS, SHIFT_BITS, AttentionConfig
from hw.attention.core.command import UNIT_ELEMENTS
from hw.attention.core.scale import OutputScale

#: Bits of a byte address, and of a count in a launch.
ADDRESS_BITS = 64
COUNT_BITS = 32
#: log2 of the bytes of `hw.attention.config.UNIT_BITS`: of `UNIT_ELEMENTS` queries, keys or values.
UNIT_SHIFT = 4


class Flags(data.StructLayout):
    """Modes of a job, a bit each, lowest first: ``causal``, ``windowed``, ``sparse``, ``reuse_kv``; ``paged``
    and ``decode`` if the configuration supports them.

    With ``reuse_kv`` the first K/V head is the last one of the job before, so the caches stay valid.  With
    ``paged`` keys and values lie in pages. With ``decode`` each pair of rows of every stream has keys of its
    own, and a query tile has two rows; it excludes ``sparse`` and ``paged``.
    """

    def __init__(self, config: AttentionConfig) -> None:
        names: tuple[str, ...] = ("causal", "windowed", "sparse", "reuse_kv")
        names += ("paged",) * (config.paged or config.decodes) + ("decode",) * config.decodes
        super().__init__(dict.fromkeys(names, 1))


def size_shape(config: AttentionConfig) -> Any:
    """Return the shape of the size of a query, key or value, in `UNIT_ELEMENTS`."""
    return range(config.max_head_dim // UNIT_ELEMENTS + 1)


class Job(data.StructLayout):
    """All heads of one sequence in one mode with one set of scales."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: Bytes from the base address of each port of queries to int8 ``[heads, queries, Q-th of dqk]``.
            #: With ``decode``: bytes over all ports, to int8 ``[heads, queries, parts of dqk]``, whose parts
            #: are dealt to the ports in turn.
            "q_offset": ADDRESS_BITS,
            #: Bytes from the base address of each port of results to ``[heads, queries, W-th of dv]`` of the
            #: output type, which is written.
            "o_offset": ADDRESS_BITS,
            #: If ``sparse``: address of a row of bits for each block of positions.  It has a bit for each key
            #: tile, lowest first, and is padded with any bits to a multiple of 32 bytes.
            "bitmap": ADDRESS_BITS,
            "slopes": ADDRESS_BITS,  #: With ``alibi``: address of int32 ``[heads]``, or 0 for none.
            #: ``k_offset``, ``v_offset``: bytes from the base address of each port of keys, of values.
            "k_offset": ADDRESS_BITS,
            "v_offset": ADDRESS_BITS,
            #: ``queries``, ``keys``: of a head, at most 65,536; 0 makes the job empty.
            "queries": KEY_BITS,
            "keys": KEY_BITS,
            #: ``heads``, ``kv_group``: query heads (0 makes the job empty), and how many neighbours share
            #: keys and values.
            "heads": COUNT_BITS,
            "kv_group": COUNT_BITS,
            #: Heads packed into the rows of a query tile: 1 to the lesser of ``kv_group`` and R.
            "pack": range(config.rows + 1),
            #: ``query_units``, ``value_units``: sizes dqk (of queries and keys) and dv (of values and
            #: results), in `UNIT_ELEMENTS`.
            "query_units": size_shape(config),
            "value_units": size_shape(config),
            "flags": Flags(config),
            #: If ``windowed``: a query sees this many keys, up to the one at its position; at least 1.
            "window": KEY_BITS,
            #: ``multiplier``, ``shift``: score multiplier and shift, see
            #: `hw.attention.core.settings.RowSettings`.
            "multiplier": MULTIPLIER_BITS,
            "shift": SHIFT_BITS,
            "scale": OutputScale(config),
        }
        if config.logit_cap:
            members["cap"] = CAP_BITS  #: c, 0 for none.
        if config.paged:
            members |= {
                #: If ``paged``: address of the page table.  It has the 8 bytes of a
                #: `hw.attention.walk.pages.PageEntry` for each page of the sequence, and is padded with any
                #: bits to a multiple of 32 bytes.
                "pages": ADDRESS_BITS,
                #: Keys of a page, a power of two from ``tile_span`` to 65,536.  In each port a page holds the
                #: rows of this many keys of each K/V head.
                "page_keys": KEY_BITS,
            }
        super().__init__(members)
