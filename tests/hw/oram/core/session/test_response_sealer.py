"""Responses sealed, bit for bit, and the cycle of each record's last beat."""

import functools
import random

import numpy as np
import pytest

from hw.lib.place import InlinePlacer
from hw.oram.config import OramConfig
from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.session.record import record_shape
from hw.oram.core.session.response_sealer import ResponseSealer
from hw.oram.core.stage.layouts import response_layout
from hw.oram.driver.keys import Session
from hw.oram.driver.operations import OperationResults
from hw.oram.driver.sealing import seal_responses
from tests.support.gateware.streams import bits_of
from tests.support.oram.blocks import bits, content, round_keys
from tests.support.oram.timed import keyed, run_timed
from tests.support.oram.workloads import SMALLEST

#: Values of half a block, of a row, and of several.
CONFIGS = {
    8: OramConfig(**SMALLEST),
    64: OramConfig(**SMALLEST, value_bytes=64, key_bits=32),
    192: OramConfig(**SMALLEST, value_bytes=192),
}


@functools.cache
def unit(value_bytes):
    return ResponseSealer(CONFIGS[value_bytes], InlinePlacer())


def rows_of(rng, dut, config, results, n):
    """Return the rows of a response; all but the first have their value alone."""
    size = config.row_bytes
    for row in range(config.value_rows):
        told = {name: int(rng.integers(8)) for name in ("operation", "status", "key")}
        if row == 0:
            told |= {"status": int(results.statuses[n]), "key": int(results.keys[n])}
        value = bits(results.values[n, size * row : size * (row + 1)])
        yield bits_of(dut.i.payload, told | {"first": row == 0, "value": value})


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("value_bytes", CONFIGS)
def test_responses(value_bytes, seed):
    """Back to back, and with pauses."""
    rng, pauses = np.random.default_rng([value_bytes, seed]), random.Random(seed)
    config, count = CONFIGS[value_bytes], 30 if value_bytes == 8 else 8
    key, confirm = rng.bytes(16), rng.bytes(7)
    results = OperationResults(
        statuses=rng.integers(0, 7, count).astype(np.uint8),
        keys=rng.integers(0, 1 << config.key_bits, count, np.uint64),
        values=rng.integers(0, 256, (count, config.value_bytes), np.uint8),
    )
    dut, shape = unit(value_bytes), record_shape(config)
    assert dut.i.payload.shape() == response_layout(config)
    rows, begins, cycle = {}, [], Keystream.LATENCY
    for n in range(count):
        begins.append(cycle)
        rows |= {cycle + at: row for at, row in enumerate(rows_of(rng, dut, config, results, n))}
        cycle += config.interval + (pauses.randrange(12) if seed else 0)
    latency = ResponseSealer.latency(config)
    (beats,) = run_timed(
        dut,
        [(dut.i, rows)],
        [dut.o],
        before=keyed(dut.power, shape, key),
        constants=[*round_keys(dut, key), (dut.confirm, bits(confirm)), (dut.enable, 1)],
        until=cycle + latency,
    )
    found = b"".join(content(beat, 64) for beat in beats.values())
    expected = seal_responses(config, Session(key=key, confirm=confirm), results)
    assert found == expected.tobytes()
    per_record = config.command_bytes // 64
    assert list(beats)[per_record - 1 :: per_record] == [begin + latency for begin in begins]
