"""Sealed records opened by hand with the golden GCM, and rejection of changed records."""

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from hw.oram.driver.keys import Session
from hw.oram.driver.operations import UNVERIFIED, OperationResults, Operations
from hw.oram.driver.sealing import (
    STOP,
    open_commands,
    open_responses,
    seal_commands,
    seal_responses,
    stop_record,
)

KEY = bytes(range(16))
SESSION = Session(key=KEY, confirm=b"confirm")


def message_of(record, value_bytes, iv):
    """Return the sealed text of a record, byte by byte as specified."""
    end = 48 + -(-value_bytes // 16) * 16
    return AESGCM(KEY).decrypt(bytes(iv), record[32:end].tobytes() + record[16:32].tobytes(), None)


def some_operations(config, count=5):
    rng = np.random.default_rng(1)
    return Operations(
        codes=rng.choice([Code.GET, Code.PUT, Code.DELETE], count).astype(np.uint8),
        keys=rng.integers(0, 1 << 63, count, dtype=np.uint64),
        values=rng.integers(0, 256, (count, config.value_bytes), dtype=np.uint8),
    )


@pytest.mark.parametrize(
    ("value_bytes", "record_bytes"), [(8, 64), (16, 64), (32, 128), (64, 128), (512, 576)]
)
def test_layout_and_tag(value_bytes, record_bytes):
    config = OramConfig(value_bytes=value_bytes)
    operations = some_operations(config)
    records = seal_commands(config, SESSION, operations, first=2**33 + 7)
    assert records.shape == (5, record_bytes)
    length = 16 + -(-value_bytes // 16) * 16
    for n, record in enumerate(records):
        sequence = 2**33 + 7 + n
        assert record[:8].tobytes() == sequence.to_bytes(8, "little")
        assert record[8:16].tolist() == [0] * 8
        iv = sequence.to_bytes(8, "little") + bytes(4)
        message = message_of(record, value_bytes, iv)
        assert message[0] == operations.codes[n]
        assert message[8:16] == int(operations.keys[n]).to_bytes(8, "little")
        assert message[16 : 16 + value_bytes] == operations.values[n].tobytes()
        assert not any(message[1:8])
        assert not any(message[16 + value_bytes :])
        assert not record[32 + length :].any()


def test_a_launch_ends_behind_its_last_command():
    config = OramConfig(value_bytes=64)
    record = stop_record(config, 2**40 + 3)
    assert record.shape == (config.command_bytes,)
    assert record[:9].tobytes() == (2**40 + 3).to_bytes(8, "little") + bytes([STOP])
    assert not record[9:].any()


def test_responses_have_a_direction_of_their_own():
    config = OramConfig(value_bytes=8)
    operations = some_operations(config)
    results = OperationResults(statuses=operations.codes, keys=operations.keys, values=operations.values)
    records = seal_responses(config, SESSION, results, first=3)
    message = message_of(records[0], 8, (3).to_bytes(8, "little") + (1).to_bytes(4, "little"))
    assert message[:8] == bytes([operations.codes[0]]) + b"confirm"
    assert message[16:24] == operations.values[0].tobytes()
    opened = open_responses(config, SESSION, records, first=3)
    assert opened.genuine.all()
    assert opened.confirmed.all()
    assert np.array_equal(opened.results.statuses, results.statuses)
    assert np.array_equal(opened.results.keys, results.keys)
    assert np.array_equal(opened.results.values, results.values)
    assert not open_commands(config, SESSION, records, first=3).genuine.any()


def test_changed_records_are_not_genuine():
    config = OramConfig(value_bytes=8)
    records = seal_commands(config, SESSION, some_operations(config))
    assert open_commands(config, SESSION, records).genuine.all()
    for byte in (0, 7, 16, 24, 47, 48, 63):
        changed = records.copy()
        changed[2, byte] ^= 1
        assert open_commands(config, SESSION, changed).genuine.tolist() == [True, True, False, True, True]
    swapped = records[[0, 2, 1, 3, 4]]
    assert open_commands(config, SESSION, swapped).genuine.tolist() == [True, False, False, True, True]
    swapped[:, :8] = records[:, :8]
    assert open_commands(config, SESSION, swapped).genuine.tolist() == [True, False, False, True, True]
    assert not open_commands(config, SESSION, records, first=1).genuine.any()  # a replay
    assert not open_commands(config, replace(SESSION, key=bytes(16)), records).genuine.any()


@pytest.mark.parametrize("byte", range(7))
def test_responses_of_another_seed_are_genuine_and_not_read(byte):
    config, operations = OramConfig(value_bytes=8), some_operations(OramConfig(value_bytes=8))
    results = OperationResults(statuses=operations.codes, keys=operations.keys, values=operations.values)
    confirm = bytearray(SESSION.confirm)
    confirm[byte] ^= 1
    records = seal_responses(config, replace(SESSION, confirm=bytes(confirm)), results)
    records[1] = seal_responses(config, SESSION, results)[1]
    opened = open_responses(config, SESSION, records)
    assert opened.genuine.all()
    assert opened.confirmed.tolist() == [False, True, False, False, False]
    assert (opened.results.statuses == UNVERIFIED).tolist() == [True, False, True, True, True]
    assert not opened.results.keys[~opened.confirmed].any()
    assert not opened.results.values[~opened.confirmed].any()
