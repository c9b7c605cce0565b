"""Figures of the threat model's page, computed again."""

import math
import re
from pathlib import Path

import pytest

from hw.oram.config import BLOCK_BYTES, VERSION_BITS, OramConfig
from hw.oram.core.crypto.config import PageShape
from hw.oram.core.session.record import record_shape
from hw.oram.sizing.queues import REFRESH_CYCLES, REFRESH_INTERVAL

PAGE = (Path(__file__).parents[3] / "docs/oram-threats.md").read_text()
#: Most blocks under a key: s^2 / 2^129 is 2^-40.
MOST_BLOCKS = 2 ** ((129 - 40) / 2)
OPERATIONS = 10**12


def advantage(blocks):
    return f"2^{2 * math.log2(blocks) - 129:.1f}"


def test_a_pipeline_is_as_large_as_the_map_counts_it():
    """Two pipelines draw and permute with values of 8 bytes, one with values of 64."""
    text = Path(__file__).parents[3].joinpath("docs", "oram.md").read_text()
    (row,) = re.findall(r"\| permutation and draws \| (\S+) \|.*?\|.*?\| (\S+) \|", text)
    two, one = (int(count.replace(",", "")) for count in row)
    lanes = [OramConfig(value_bytes=value).front_lanes for value in (8, 64)]
    assert two / lanes[0] == one / lanes[1]
    assert f"AES pipelines of {one // lanes[1]:,} LUT" in PAGE
    assert f"An AES pipeline takes {one // lanes[1]:,} LUT" in text


@pytest.mark.parametrize("value", [8, 64, 384])
def test_data_limits(value):
    config = OramConfig(log_n=16, value_bytes=value, list_slots=12, overflow_entries=256, record_ports=16)
    page, session = config.page_bytes // BLOCK_BYTES, 2 * record_shape(config).slots
    row = [value, f"{config.page_bytes:,} B", page]
    for blocks in (page, session):
        row += [session] if blocks is session else []
        row += [f"{MOST_BLOCKS / blocks:.1e}".replace("e+", "e"), advantage(OPERATIONS * blocks)]
    assert "| " + " | ".join(map(str, row)) + " |" in PAGE


def test_times_to_the_limit():
    sealed = PageShape(page_bytes=256, lanes=OramConfig().aes_lanes)
    assert f"**s = 2^44.5 blocks, {MOST_BLOCKS * BLOCK_BYTES / 1e12:.0f} TB**" in PAGE
    assert f"**{MOST_BLOCKS / sealed.lanes / 300e6 / 3600:.1f} hours**, behind a link" in PAGE
    assert f"after **{MOST_BLOCKS * BLOCK_BYTES / 12.77e9 / 3600:.1f} hours**" in PAGE
    assert f"the limit is {MOST_BLOCKS / sealed.slots / 1e5 / 86400:.0f} days" in PAGE
    assert f"{2**VERSION_BITS * 4 / 250e6 / 86400:.0f} days of one page" in PAGE


def test_forgeries_and_draws():
    config = OramConfig()
    page, command = config.page_bytes // BLOCK_BYTES, record_shape(config).slots
    assert f"2^{math.log2(page + 1) - 64:.1f} with `mac_bits: 64`, P = {config.page_bytes}" in PAGE
    assert f"commands of V = 8 pass with 2^{math.log2(OPERATIONS * (command + 1)) - 128:.1f}" in PAGE
    assert f"differ from random ones with {advantage(OPERATIONS)}" in PAGE


def test_records_of_more_than_a_beat():
    beats = {
        value: OramConfig(log_n=8, value_bytes=value).command_bytes // 64 for value in (8, 16, 32, 64, 384)
    }
    assert [beats[value] for value in (8, 16)] == [1, 1]
    assert f"32 bytes has {beats[32]} beats, one of 64 has {beats[64]}, one of 384 has {beats[384]}" in PAGE


def test_clock_and_temperature():
    deadline = OramConfig(log_n=18).position.read_cycles
    times = [f"{deadline / mhz:.2f} µs at {mhz}" for mhz in (300, 333)]
    assert f"{deadline} cycles are {times[0]} MHz, {times[1]}" in PAGE
    shares = [100 * REFRESH_CYCLES / (REFRESH_INTERVAL / rate) for rate in (2, 1)]
    assert f"take {REFRESH_CYCLES:.0f}: {shares[0]:.0f} % of the time instead of {shares[1]:.0f} %" in PAGE
    assert f"every {REFRESH_INTERVAL / 2:.0f} cycles instead of {REFRESH_INTERVAL:,.0f}" in PAGE


def test_a_snapshot_of_hbm():
    config = OramConfig(log_n=20)
    size = 2 * config.buckets * 128 + config.records * config.record_bytes
    words = re.search(r"([\d.]+) MiB at 2\^20 keys, ([\d.]+) ms", PAGE)
    assert words is not None
    assert words.groups() == (f"{size / 2**20:.1f}", f"{1000 * size / 12.77e9:.1f}")
