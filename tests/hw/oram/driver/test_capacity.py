"""Bytes of every structure, and refused configurations."""

from dataclasses import replace

import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.driver.capacity import capacity_table, check_capacity, hbm_bytes

U55C = load_board("u55c")


def test_bytes_by_hand():
    """N = 2^20, C = 8: 104,858 pages and 26,214 labels of 4 bins; 2^17 buckets of 128 bytes."""
    assert capacity_table(OramConfig(), U55C) == [
        ("hbm", "position map", 2**17 * 128, 2**14 * 128),
        ("hbm", "lists and HBM bins", 209_714 * 256, 13_108 * 256),
        ("host", "pages", 104_858 * 256, 104_858 * 256),
    ]
    assert hbm_bytes(OramConfig()) == 2**24 + 209_714 * 256


def test_what_fits():
    check_capacity(OramConfig(), U55C)
    large = OramConfig(log_n=28, list_slots=14, alpha=0, position_ports=16, record_ports=16)
    check_capacity(large, U55C)  # exactly: 2^25 records of 256 bytes in 16 channels
    with pytest.raises(InputError) as refused:
        check_capacity(replace(large, alpha=0.01), U55C)
    message = str(refused.value)
    assert message.startswith(
        "log_n must be small enough for AMD Alveo U55C, which has 512.0 MiB in each of 32"
    )
    assert "lists and HBM bins        8,437.8 MiB,        527.4 MiB a channel" in message
    assert "pages" in message
    check_capacity(OramConfig(log_n=26), U55C)
    longest = OramConfig(log_n=26, record_ports=8)  # 128 bytes too long
    with pytest.raises(InputError, match="log_n must be small enough or have record_ports 16 for AMD"):
        check_capacity(longest, U55C)
    check_capacity(replace(longest, record_ports=16), U55C)
    few = OramConfig(log_n=27, alpha=0, position_ports=2, record_ports=8, interval_cycles=32)
    with pytest.raises(InputError, match="have record_ports 16 and position_ports 16 for AMD"):
        check_capacity(few, U55C)


def test_host_may_be_too_small():
    config = OramConfig(log_n=27, value_bytes=64, slots=14, list_slots=4, alpha=0)
    large = replace(U55C.memory, channel_bytes=2**40)
    roomy = replace(U55C, memories=(large, U55C.host))
    with pytest.raises(InputError, match="pages"):
        check_capacity(config, roomy)
    check_capacity(replace(config, log_n=26), roomy)


def test_ports_share_channels_where_there_are_few():
    """Two channels hold the structures of eight ports."""
    config = OramConfig(position_ports=4, record_ports=4, alpha=0, interval_cycles=8)
    need = 2 * (2**17 * 128 // 4 + 2**17 * 256 // 4)
    memory = replace(U55C.memory, channels=2, channel_bytes=need)
    check_capacity(config, replace(U55C, memories=(memory, U55C.host)))
    memory = replace(memory, channel_bytes=need - 4096)
    with pytest.raises(InputError):
        check_capacity(config, replace(U55C, memories=(memory, U55C.host)))


def test_a_board_without_host_memory_is_refused():
    with pytest.raises(InputError, match="u55c"):
        check_capacity(OramConfig(), replace(U55C, memories=(U55C.memory,)))
