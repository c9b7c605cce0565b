"""Commands of the core, and the streams between its side of keys and its side of values.

The core is fed by these streams, each in the order of passes (a pass is one query tile against the keys of
its head), and within a pass as said:

========== ================== ==============================================================================
``command`` `QueryCommand`     one a pass
``row``     `RowSettings`      one a row, row 0 first
``query``   D x int8           ``last_key_part + 1`` parts a row, row 0 first; the last one zero padded
``tile[s]`` `TileCommand`      for each stream the tiles of the pass, at least one: the last one ``closes``
``key[s]``  D x int8           for each tile ``last_index + 1`` keys of ``last_key_part + 1`` parts
``value[s]`` D x int8          for each tile ``last_index + 1`` values of ``last_value_part + 1`` parts
========== ================== ==============================================================================

It answers with results, row after row, with zeros for an empty pass.  Each row starts in a new beat of its
own, from lane 0, and takes as many beats as its ``16 * value_units`` elements need; what lies behind them in
the last beat has no meaning.
"""

from __future__ import annotations

from amaranth.hdl import signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import CAP_BITS, KEY_BITS, AttentionConfig
from hw.attention.core.scale import OutputScale

#: Elements that sizes of queries, keys and values are counted in.
UNIT_ELEMENTS = 16
#: Index of the one key of a dummy tile: no row sees it, for ``end`` is at most 65,536.
NO_KEY = (1 << KEY_BITS) - 1
#: Cycles from ``take`` of a `PartSource` of keys to its ``parts``.
PART_LATENCY = 4


class QueryCommand(data.StructLayout):
    """A pass, as the side of queries and of results sees it.

    Members
    -------
    rows
        Rows that are used, 1 ... R; the others idle.
    last_key_part, last_value_part
        Parts (of D elements) of a query or key, and of a value or result, less 1.
    value_units
        Elements of a value and of a result by `UNIT_ELEMENTS`: 1 ... F D / 16.
    scale : OutputScale
        Of its results.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "rows": range(config.rows + 1),
                "last_key_part": range(config.folds),
                "last_value_part": range(config.folds),
                "value_units": range(config.max_head_dim // UNIT_ELEMENTS + 1),
                "scale": OutputScale(config),
            }
        )


class TileCommand(data.StructLayout):
    """A tile of keys and values of one stream.

    Members
    -------
    first : 17
        Index of its first key in the head; the others follow, every S-th key.
    last_index
        Its keys, less 1.
    opens, closes : 1
        It is the first, the last one that this stream has in its pass.
    dummy : 1
        It is there only for every stream to have a tile in every pass that is not empty: its one key has the
        index `NO_KEY`, which no row sees, and parts without meaning (but there are parts, as for every other
        tile).
    last_key_part, last_value_part
        See `QueryCommand`.
    cap : 23
        With ``logit_cap`` only: c, 0 for none.
    keep : 1
        With the configuration's ``decode`` only: the next pass has the same keys and values.
    """

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            "first": KEY_BITS,
            "last_index": config.index_bits,
            "opens": 1,
            "closes": 1,
            "dummy": 1,
            "last_key_part": range(config.folds),
            "last_value_part": range(config.folds),
        }
        if config.logit_cap:
            members["cap"] = CAP_BITS
        if config.decodes:
            members["keep"] = 1
        super().__init__(members)


class Tile(data.StructLayout):
    """A tile of keys whose logits and maximum lie in the buffer.

    Members
    -------
    last_index
        Index of its last key: one less than its keys.
    opens, closes : 1
        It is the first, the last of its pass.
    last_value_part, keep
        Of its command.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "last_index": config.index_bits,
                "opens": 1,
                "closes": 1,
                "last_value_part": range(config.folds),
                **({"keep": 1} if config.decodes else {}),
            }
        )


class PartSource(wiring.Signature):
    """Parts of keys, or of values, of a job that decodes, from the movers to the core.

    Members
    -------
    valid : Out(1)
        There is a part for every two rows of every stream.
    take : In(1)
        They are taken; only in cycles in which ``valid`` is high.
    last, keep : In(1)
        With ``take``: they are the last ones of a pass; and those of the pass are to come again for the next
        one, before any others.  ``keep`` is low while no pass decodes.
    parts : Out(D x int8 for each of the S P ports)
        `PART_LATENCY` cycles later, those of values when their probabilities come (``step`` of
        `hw.attention.core.row.cell.Timing`): key ``n`` of the head is at place ``n mod (S P)``.
    """

    def __init__(self, config: AttentionConfig) -> None:
        part = data.ArrayLayout(signed(8), config.lanes)
        super().__init__(
            {
                "valid": Out(1),
                "take": In(1),
                "last": In(1),
                "keep": In(1),
                "parts": Out(data.ArrayLayout(part, config.decode_streams)),
            }
        )
