"""Commands that the unit refuses."""

import random
from dataclasses import replace

import pytest

from hw.errors import InputError
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.fields import attention_fields
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.attention.bench import Drawn

CONFIG = AttentionUnitConfig(shape=GranuleShape())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 65}, "heads must be from 1 to 64, not 65"),
        ({"queries": 0}, "queries must be from 1 to 512, not 0"),
        ({"keys": 513, "queries": 1}, "keys must be from 1 to 512, not 513"),
        ({"head_dim": 40}, "head_dim must be a multiple of 16, not 40"),
        ({"head_dim": 80}, "head_dim must be from 16 to 64, not 80"),
        (
            {"causal": True, "queries": 9, "keys": 8},
            "queries of causal attention must be from 1 to 8, not 9",
        ),
        ({"output_shift": 48}, "output shift must be from 19 to 47, not 48"),
    ],
)
def test_refused_by_name(change, message):
    command = Drawn(random.Random(1), CONFIG, 1 << 18).command(tokens=20)
    attention_fields(CONFIG, command)
    with pytest.raises(InputError, match=f"^{message}$"):
        attention_fields(CONFIG, replace(command, **change))


def test_wider_heads_than_words_are_refused():
    with pytest.raises(InputError, match=r"^lanes must be at most 64, not 128$"):
        AttentionUnitConfig(shape=GranuleShape(), lanes=128)
