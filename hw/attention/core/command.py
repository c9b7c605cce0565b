"""Commands of the core, and the streams between its key side and its value side.

These streams feed the core, each in the order of passes; a pass is one query tile against the keys of its
head. Within a pass:

========== ================== ==============================================================================
``command`` `QueryCommand`     one a pass
``row``     `RowSettings`      one a row, row 0 first
``query``   D x int8           ``last_key_part + 1`` parts a row, row 0 first; the last one zero padded
``tile[s]`` `TileCommand`      for each stream the tiles of the pass, at least one: the last one ``closes``
``key[s]``  D x int8           for each tile ``last_index + 1`` keys of ``last_key_part + 1`` parts
``value[s]`` D x int8          for each tile ``last_index + 1`` values of ``last_value_part + 1`` parts
========== ================== ==============================================================================

The core returns results, row after row, and zeros for an empty pass.  Each row starts in a new beat, at lane
0, and takes as many beats as its ``16 * value_units`` elements need; the rest of the last beat is undefined.
"""

from amaranth.hdl import signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import CAP_BITS, KEY_BITS, AttentionConfig
from hw.attention.core.scale import OutputScale

#: Unit of the sizes of queries, keys and values, in elements.
UNIT_ELEMENTS = 16
#: Index of the key of a placeholder tile: no row sees it, for ``end`` is at most 65,536.
NO_KEY = (1 << KEY_BITS) - 1
#: Cycles from ``take`` of a `PartSource` of keys to its ``parts``.
PART_LATENCY = 4


class QueryCommand(data.StructLayout):
    """A pass, for the query side and the results."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "rows": range(config.rows + 1),  #: Rows in use, 1 ... R; the others idle.
                #: ``last_key_part``, ``last_value_part``: parts (of D elements) of a query or key, and of a
                #: value or result, less 1.
                "last_key_part": range(config.folds),
                "last_value_part": range(config.folds),
                #: Units of 16 elements (`UNIT_ELEMENTS`) of a value and of a result: 1 ... F D / 16.
                "value_units": range(config.max_head_dim // UNIT_ELEMENTS + 1),
                "scale": OutputScale(config),  #: Of its results.
            }
        )


class TileCommand(data.StructLayout):
    """A tile of keys and values of one stream."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            "first": KEY_BITS,  #: Index of its first key in the head; then every S-th key follows.
            "last_index": config.index_bits,  #: Its keys, less 1.
            #: ``opens``, ``closes``: it is the first, or the last, tile of this stream in its pass.
            "opens": 1,
            "closes": 1,
            #: Placeholder tile, so that each stream has a tile in every pass that is not empty.  Its only key
            #: has the index `NO_KEY` (131,071), which no row sees; its parts have no meaning, but are sent
            #: like those of any tile.
            "dummy": 1,
            "last_key_part": range(config.folds),
            "last_value_part": range(config.folds),
        }
        if config.logit_cap:
            members["cap"] = CAP_BITS  #: c, 0 for none.
        if config.decodes:
            members["keep"] = 1  #: The next pass has the same keys and values.
        super().__init__(members)


class BufferedTile(data.StructLayout):
    """A tile whose logits and maximum are in the logit buffer."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "last_index": config.index_bits,  #: Index of its last key.
                #: ``opens``, ``closes``: it is the first, or the last, of its pass.
                "opens": 1,
                "closes": 1,
                #: ``last_value_part``, ``keep``: of its command.
                "last_value_part": range(config.folds),
                **({"keep": 1} if config.decodes else {}),
            }
        )


class PartSource(wiring.Signature):
    """Parts of keys, or of values, of a job that decodes, from the movers to the core."""

    def __init__(self, config: AttentionConfig) -> None:
        part = data.ArrayLayout(signed(8), config.lanes)
        super().__init__(
            {
                "valid": Out(1),  #: A part waits for each pair of rows of each stream.
                "take": In(1),  #: Takes them; only while ``valid`` is high.
                #: ``last``, ``keep``, with ``take``: the parts are the last ones of a pass; the next pass
                #: reads the same parts again.  It reads them before any others.  ``keep`` is low while no
                #: pass decodes.
                "last": In(1),
                "keep": In(1),
                #: The parts: of keys `PART_LATENCY` cycles later, of values together with their probabilities
                #: (``step`` of `hw.attention.core.timing.CoreTiming`).  Key ``n`` of the head is at index ``n
                #: mod (S P)``.
                "parts": Out(data.ArrayLayout(part, config.decode_streams)),
            }
        )
