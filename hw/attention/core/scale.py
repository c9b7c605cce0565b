"""Scale of the results: multiplier, shift or fraction bits, by output format."""

from amaranth.lib import data

from hw.attention.config import FRACTION_BITS, MULTIPLIER_BITS, OUTPUT_SHIFT_BITS, AttentionConfig


class OutputScale(data.StructLayout):
    """Scale of a launch's results; its members depend on the configuration's ``output``."""

    def __init__(self, config: AttentionConfig) -> None:
        if config.output == "int16":
            super().__init__({"fraction": FRACTION_BITS})  #: Fraction bits of the results.
        else:
            super().__init__(
                {
                    #: ``multiplier``, ``shift``: m_o and s_o, results are O / l times
                    #: ``m_o * 2^(17 - s_o)``; s_o is at least 19.
                    "multiplier": MULTIPLIER_BITS,
                    "shift": OUTPUT_SHIFT_BITS,
                }
            )
