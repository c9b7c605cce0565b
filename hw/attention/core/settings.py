"""Settings of a row: its visible keys, its scale and its slope."""

from amaranth.hdl import signed
from amaranth.lib import data

from hw.attention.config import (
    KEY_BITS,
    MULTIPLIER_BITS,
    POSITION_BITS,
    SHIFT_BITS,
    SLOPE_BITS,
    AttentionConfig,
)


class RowSettings(data.StructLayout):
    """The visible keys of a query, and the scale of its scores."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: ``first``, ``end``: it sees keys ``first <= j < end``; none if ``end <= first``.
            "first": KEY_BITS,
            "end": KEY_BITS,
            #: ``multiplier``, ``shift``: raw score to log2 units.
            "multiplier": MULTIPLIER_BITS,
            "shift": SHIFT_BITS,
        }
        if config.alibi:
            members |= {
                #: ``position``, ``slope``: the index of the key at distance zero, ``i + keys - queries``,
                #: and the slope of the query's head, 0 for none.
                "position": signed(POSITION_BITS),
                "slope": SLOPE_BITS,
            }
        super().__init__(members)
