"""The shape of the engine: legal values, widths at their limits, and the times of the stages."""

import dataclasses

import pytest

from hw.attention.config import MAX_KEYS, AttentionConfig
from hw.attention.core.timing import CoreTiming
from hw.errors import InputError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "rows must be from 1 to 64, not 0"),
        ({"rows": 65}, "rows must be from 1 to 64, not 65"),
        ({"rows": 2.5}, "rows must be a whole number, not 2.5"),
        ({"rows": True}, "rows must be a whole number, not True"),
        ({"lanes": 0}, "lanes must be a multiple of 16 from 16 to 128, not 0"),
        ({"lanes": 40}, "lanes must be a multiple of 16 from 16 to 128, not 40"),
        ({"lanes": 144}, "lanes must be a multiple of 16 from 16 to 128, not 144"),
        ({"folds": 0}, "folds must be from 1 to 4, not 0"),
        ({"folds": 5}, "folds must be from 1 to 4, not 5"),
        ({"tile_keys": 8}, "tile_keys must be a power of two from 16 to 128, not 8"),
        ({"tile_keys": 100}, "tile_keys must be a power of two from 16 to 128, not 100"),
        ({"tile_keys": 256}, "tile_keys must be a power of two from 16 to 128, not 256"),
        ({"streams": 3}, "streams must be a power of two from 1 to 16, not 3"),
        ({"streams": 32}, "streams must be a power of two from 1 to 16, not 32"),
        ({"ports_per_stream": 3}, "ports_per_stream must be a power of two from 1 to 16, not 3"),
        ({"query_ports": 3}, "query_ports must be 1, 2 or 4, a divisor of lanes / 16, not 3"),
        ({"query_ports": 2, "lanes": 48}, "query_ports must be 1, 2 or 4, a divisor of lanes / 16, not 2"),
        ({"ports_per_stream": 32}, "ports_per_stream must be a power of two from 1 to 16, not 32"),
        ({"port_bits": 64}, "port_bits must be 0 or a power of two from 128 to 1024, not 64"),
        ({"port_bits": 2048}, "port_bits must be 0 or a power of two from 128 to 1024, not 2048"),
        ({"merge_lanes": 16}, "merge_lanes must be a power of two from 1 to 8, not 16"),
        ({"merge_lanes": 2, "tile_keys": 16}, "merge_lanes must be a power of two from 4 to 8, not 2"),
        (
            {"merge_lanes": 4, "lanes": 80, "tile_keys": 16},
            "merge_lanes must be a power of two from 8 to 8, not 4",
        ),
        ({"cached_keys": 64}, "cached_keys must be 0 or a power of two from 128 to 262144, not 64"),
        ({"cached_keys": 300}, "cached_keys must be 0 or a power of two from 128 to 262144, not 300"),
        ({"probability_bits": 10}, "probability_bits must be 8, 12, 16 or 20, not 10"),
        ({"exp_segments": 64}, "exp_segments must be 8, 16 or 32, not 64"),
        ({"output": "float16"}, "output must be int8, int16 or bfloat16, not 'float16'"),
        ({"logit_cap": 1}, "logit_cap must be true or false, not 1"),
        ({"alibi": "yes"}, "alibi must be true or false, not 'yes'"),
    ],
)
def test_illegal_values(changes, message):
    with pytest.raises(InputError) as raised:
        AttentionConfig(**changes)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("changes", "ports"),
    [
        ({}, 8),
        ({"rows": 12}, 4),
        ({"rows": 64}, 8),
        ({"rows": 8, "streams": 8}, 2),
        ({"rows": 4, "query_ports": 2, "result_ports": 4}, 2),
        ({"decode": False}, None),
        ({"rows": 1}, None),
        ({"streams": 1}, None),
        ({"lanes": 48}, None),
        ({"cached_keys": 0}, None),
        ({"rows": 2, "result_ports": 4}, None),
    ],
)
def test_shapes_that_can_decode_have_a_port_for_each_pair_of_rows(changes, ports):
    config = AttentionConfig(**{"rows": 16, "streams": 2, "ports_per_stream": 4, "decode": True} | changes)
    assert config.decodes == (ports is not None)
    assert config.ports == (ports or 4)
    assert config.port_width(256) == (config.part_bits if config.decodes else 256)


@pytest.mark.parametrize("bits", [8, 12, 16, 20])
@pytest.mark.parametrize(
    ("lanes", "folds", "tile_keys"), [(16, 1, 16), (80, 1, 64), (96, 3, 32), (128, 4, 128)]
)
def test_widths_hold_their_extremes(lanes, folds, tile_keys, bits):
    config = AttentionConfig(
        lanes=lanes,
        folds=folds,
        tile_keys=tile_keys,
        probability_bits=bits,
        merge_lanes=8 if lanes > 32 else 2,
    )
    one = 2**bits

    def fits_signed(value, width):
        return -(2 ** (width - 1)) <= value < 2 ** (width - 1)

    elements = config.max_head_dim
    assert fits_signed(elements * 128 * 128, config.score_bits)
    assert not fits_signed(elements * 128 * 128, config.score_bits - 1)
    assert one < 2**config.probability_width <= 2 * one
    assert fits_signed(-128 * one * tile_keys, config.partial_bits)
    assert one * tile_keys < 2**config.partial_sum_bits
    assert fits_signed(-128 * one * MAX_KEYS, config.output_bits)
    assert fits_signed(127 * one * MAX_KEYS, config.output_bits)
    assert one * MAX_KEYS < 2**config.sum_bits
    assert config.merge_steps * config.merge_lanes == elements
    assert config.part_steps <= tile_keys


def test_output_beats():
    config = AttentionConfig(lanes=80, folds=1, output="int8", merge_lanes=8)
    assert [config.output_beats(width) for width in (64, 128, 256, 512, 1024)] == [10, 5, 3, 2, 1]
    assert dataclasses.replace(config, output="bfloat16").output_beats(512) == 3


def test_stages_follow_each_other():
    timing = CoreTiming(AttentionConfig(folds=1))
    assert (timing.scale, timing.write, timing.ready, timing.step) == (8, 11, 13, 8)
    assert (timing.merge, timing.final, timing.divide, timing.normalize) == (11, 14, 0, 8)
    assert timing.drained == 8 + 32 + 6
    options = CoreTiming(AttentionConfig(folds=1, logit_cap=True, alibi=True, probability_bits=8))
    assert (options.write, options.step) == (11 + 7, 8)


@pytest.mark.parametrize("streams", [2, 4, 8, 16])
def test_several_streams_take_longer(streams):
    """Joined sums take a capture, a comparison and an addition a level, a difference and a shift."""
    levels = 1 if streams <= 4 else 2
    one, several = CoreTiming(AttentionConfig()), CoreTiming(AttentionConfig(streams=streams))
    assert several.final == one.final + 1
    assert several.divide == 3 + 2 * levels
    assert several.drained == one.drained + several.divide
