"""Latency of an operation's path, against the room of the configuration."""

import pytest

from hw.oram.config import OramConfig
from hw.oram.movers.blocks.writer import BlockWriter
from hw.oram.movers.ring.command_reader import CommandReader
from hw.oram.movers.ring.response_writer import ResponseWriter
from hw.oram.movers.timing import PathTiming


@pytest.mark.parametrize("touch", ["one", "both"])
@pytest.mark.parametrize("pad", ["skip", "always"])
@pytest.mark.parametrize("value_bytes", [8, 32, 64, 384, 512])
@pytest.mark.parametrize("aes_lanes", [1, 4])
@pytest.mark.parametrize("position_cycles", [16, 288, 1000])
def test_no_operation_waits_for_room_before_its_issue(touch, pad, value_bytes, aes_lanes, position_cycles):
    """The accepted operations are those in flight at the full rate, and one whose issue is not counted
    yet.
    """
    config = OramConfig(
        touch=touch,
        pad=pad,
        value_bytes=value_bytes,
        aes_lanes=aes_lanes,
        position_cycles=position_cycles,
    )
    assert (config.accepted - 1) * config.interval >= PathTiming(config).position
    assert config.operation_bits <= 12


@pytest.mark.parametrize("value_bytes", [8, 64, 384, 512])
@pytest.mark.parametrize("aes_lanes", [1, 2, 4])
def test_no_launch_ends_before_its_last_page(value_bytes, aes_lanes):
    """Its response may be written at once; its page arrives while the ports are still awaited."""
    config = OramConfig(value_bytes=value_bytes, aes_lanes=aes_lanes)
    timing = PathTiming(config)
    assert timing.quiet > timing.page_sealed + BlockWriter.ADDRESS_LATENCY - timing.response_sealed
    # The first operation of the next launch is alone.
    assert timing.response_sealed + timing.quiet + timing.end >= timing.rest


def test_an_operation_alone_on_an_idle_map():
    """The figure of docs/oram.md: from the command's last beat to the address of its response."""
    timing = PathTiming(OramConfig())
    accepted = CommandReader.ARRIVED_LATENCY + 1
    response = timing.response_sealed + ResponseWriter.ADDRESS_LATENCY
    assert accepted + timing.idle_position + timing.idle_touch + response == 535


@pytest.mark.parametrize("value_bytes", [8, 512])
@pytest.mark.parametrize("touch", ["one", "both"])
def test_stated_deadlines_hold_for_operations_alone(touch, value_bytes):
    shape = {"touch": touch, "value_bytes": value_bytes, "interval_cycles": 640}
    stated = PathTiming(OramConfig(**shape, position_cycles=900, touch_cycles=4000))
    assert (stated.idle_position, stated.idle_touch) == (stated.position, stated.touch)
    chosen = PathTiming(OramConfig(**shape))
    assert chosen.idle_position < chosen.position
    assert chosen.idle_touch <= chosen.touch
