"""Commands opened against the sealed ones: broken ones are rejected, each on its cycle."""

import functools
import random

import numpy as np
import pytest

from hw.lib.place import InlinePlacer
from hw.oram.config import OramConfig
from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.layouts import Code, command_layout
from hw.oram.core.session.command_opener import CommandOpener
from hw.oram.core.session.record import record_shape
from hw.oram.core.stage.layouts import value_write_layout
from hw.oram.driver.keys import Session
from hw.oram.driver.operations import Operations
from hw.oram.driver.sealing import seal_commands
from tests.support.gateware.streams import plain
from tests.support.oram.blocks import bits, round_keys
from tests.support.oram.timed import keyed, run_timed
from tests.support.oram.workloads import SMALLEST

#: Values of half a block, of a row, and of several; number of commands: for the first, numbers wrap.
SHAPES = {
    8: (OramConfig(**SMALLEST), 140),
    64: (OramConfig(**SMALLEST, value_bytes=64, key_bits=32), 12),
    192: (OramConfig(**SMALLEST, value_bytes=192), 6),
}


@functools.cache
def unit(value_bytes):
    return CommandOpener(SHAPES[value_bytes][0], InlinePlacer())


def commands(rng, config, count):
    """Draw commands, some with unknown codes or too long keys, seal them, and break some."""
    codes = rng.integers(0, 5, count).astype(np.uint8)
    odd = rng.random(count) < 0.2
    codes[odd] = rng.integers(5, 256, odd.sum())
    keys = rng.integers(0, 1 << config.key_bits, count, np.uint64)
    if config.key_bits < 64:
        for bit in (config.key_bits, 63):
            keys[rng.random(count) < 0.2] |= np.uint64(1 << bit)
    values = rng.integers(0, 256, (count, config.value_bytes), np.uint8)
    return Operations(codes=codes, keys=keys, values=values)


def spoil(rng, config, records):
    """Flip a bit of the tag or of the sealed text, in a third; move the last to another's place."""
    broken = rng.random(len(records)) < 0.3
    for n in np.flatnonzero(broken):
        records[n, rng.integers(16, 48 + config.value_bytes)] ^= 1 << rng.integers(8)
    records[-1] = records[-2]
    broken[-1] = True
    return broken


@pytest.mark.sample(2)
@pytest.mark.parametrize("within", [1, 4])
@pytest.mark.parametrize("value_bytes", SHAPES)
def test_commands(value_bytes, within):
    """Beats of a record arrive at the opener's rate, or back to back."""
    rng, pauses = np.random.default_rng([value_bytes, within]), random.Random(within)
    config, count = SHAPES[value_bytes]
    key = rng.bytes(16)
    operations = commands(rng, config, count)
    records = seal_commands(config, Session(key=key, confirm=bytes(7)), operations)
    broken = spoil(rng, config, records)
    records[:, :16] = rng.integers(0, 256, (count, 16))  # the place alone decides, not the number
    records[:, 32 + 16 + -(-config.value_bytes // 16) * 16 :] = 0xA5

    beats, begins, cycle = {}, [], Keystream.LATENCY + 2
    for record in records:
        begins.append(cycle)
        for n, beat in enumerate(record.reshape(-1, 64)):
            beats[cycle + within * n] = bits(beat)
        cycle += config.interval + (pauses.randrange(9) if pauses.random() < 0.5 else 0)
    dut, shape = unit(value_bytes), record_shape(config)
    came, rows = run_timed(
        dut,
        [(dut.i, beats)],
        [dut.command, dut.value],
        before=keyed(dut.power, shape, key),
        constants=[*round_keys(dut, key), (dut.enable, 1)],
        until=cycle + CommandOpener.latency(config),
    )
    assert list(came) == [begin + CommandOpener.latency(config) for begin in begins]
    layout = command_layout(config)
    for n, word in enumerate(came.values()):
        code, asked = int(operations.codes[n]), int(operations.keys[n])
        malformed = code > max(Code) or asked >= 1 << config.key_bits
        assert plain(layout.from_bits(word)) == {
            "operation": n % (1 << config.operation_bits),
            "code": 0 if broken[n] else code % 8,
            "key": 0 if broken[n] else asked % (1 << config.key_bits),
            "rejected": broken[n],
            "malformed": malformed and not broken[n],
        }
    found = [plain(value_write_layout(config).from_bits(word)) for word in rows.values()]
    size = config.row_bytes
    for n in np.flatnonzero(~broken):
        for row in range(config.value_rows):
            write = found[n * config.value_rows + row]
            content = operations.values[n, size * row : size * (row + 1)]
            assert write == {"operation": n % (1 << config.operation_bits), "row": row, "data": bits(content)}
    assert len(found) == count * config.value_rows
    lasts = list(rows)[config.value_rows - 1 :: config.value_rows]
    assert all(row < command for row, command in zip(lasts, came, strict=True))
