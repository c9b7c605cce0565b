"""A command of the attention unit in bits, and the streams inside the unit."""

from __future__ import annotations

from amaranth.lib import data

from hw.attention.config import MULTIPLIER_BITS, SHIFT_BITS
from hw.attention.core.scale import OutputScale
from hw.network.attention.config import AttentionUnitConfig

#: Most heads of a command.
MOST_HEADS = 64


class HeadRows(data.StructLayout):
    """Addresses of a tensor of heads, in granules."""

    def __init__(self, config: AttentionUnitConfig) -> None:
        address = config.shape.granule_address_bits
        super().__init__(
            {
                "base": address,  #: Of the first row of the first head.
                "pitch": address,  #: From a row to the next of its head.
                "step": address,  #: From a head to the next.
            }
        )


class Scales(data.StructLayout):
    """Scales of scores and results, see ``docs/attention-specification.md``."""

    def __init__(self, config: AttentionUnitConfig) -> None:
        super().__init__(
            {"multiplier": MULTIPLIER_BITS, "shift": SHIFT_BITS, "output": OutputScale(config.core)}
        )


class AttentionFields(data.StructLayout):
    """A command."""

    def __init__(self, config: AttentionUnitConfig) -> None:
        super().__init__(
            {
                **{name: HeadRows(config) for name in "qkvo"},
                #: ``last_head``, ``last_query``, ``last_key``: heads, and queries and keys of each, less 1.
                "last_head": range(MOST_HEADS),
                "last_query": range(config.tokens),
                "last_key": range(config.tokens),
                "visible": range(config.tokens + 1),  #: Keys that the first query sees.
                "causal": 1,  #: Each query sees a key more than the one before.
                "units": range(config.granules + 1),  #: Granules of a head.
                "scales": Scales(config),
            }
        )


class RowRun(data.StructLayout):
    """The rows of all heads of a tensor."""

    def __init__(self, config: AttentionUnitConfig) -> None:
        super().__init__(
            {
                "rows": HeadRows(config),
                "last_row": range(config.tokens),  #: Rows of a head, less 1.
                "last_head": range(MOST_HEADS),
                "units": range(config.granules + 1),
            }
        )


class RowPlace(data.StructLayout):
    """A word of a row: its address and granules, and whether it is the run's last one."""

    def __init__(self, config: AttentionUnitConfig, granules: int) -> None:
        super().__init__({"address": config.shape.granule_address_bits, "enable": granules, "last": 1})


class PassRun(data.StructLayout):
    """The passes of a command, each field as in `AttentionFields`."""

    def __init__(self, config: AttentionUnitConfig) -> None:
        fields = AttentionFields(config)
        names = ("last_head", "last_query", "visible", "causal", "units", "scales")
        super().__init__({name: fields[name].shape for name in names})


class QueryPass(data.StructLayout):
    """A pass: up to R queries of a head."""

    def __init__(self, config: AttentionUnitConfig) -> None:
        super().__init__(
            {
                "rows": range(config.rows + 1),
                "visible": range(config.tokens + 1),  #: Keys that its first query sees.
                "causal": 1,
                "last_key": range(config.tokens),  #: Keys that its last query sees, less 1.
                "ends_head": 1,  #: It is the last pass of its head, and sees all keys.
                "units": range(config.granules + 1),
                "scales": Scales(config),
            }
        )


class Span(data.StructLayout):
    """The rows of a head that a pass takes, from the first one on."""

    def __init__(self, config: AttentionUnitConfig) -> None:
        super().__init__(
            {
                "last": range(config.tokens),  #: Rows, less 1.
                "frees": 1,  #: No later pass takes rows of this head.
            }
        )
