"""A memory that changes bytes behind the kernel's back, when it is told to and at no other time."""

import numpy as np
import pytest

from hw.board.memory_timing import HostTiming
from hw.errors import InputError
from tests.support.memory.master import config, read_all
from tests.support.memory.native import NativeMemory

BASE = 1 << 40


def memory_with(*tampers):
    at_base = [
        (BASE + read, skip, BASE + to, BASE + source, *more) for read, skip, to, source, *more in tampers
    ]
    given = config(HostTiming(), ports=2, channels=1, base_address=BASE, tampers=at_base)
    return NativeMemory(config=given, data_bits=512)


def test_bytes_change_when_the_read_that_is_waited_for_begins():
    flip = (4096, 1, 4100, 4100, 1, 0x10)
    keep, bring_back = (128, 0, 8192, 128, 64, 0), (128, 1, 192, 8192, 64, 0)
    with memory_with(flip, keep, bring_back) as memory:
        content = np.random.default_rng(1).integers(256, size=16384, dtype=np.uint8)
        store = memory.view.array(BASE, 16384)
        store[:] = content
        read_all(memory, [BASE + 4096, BASE + 4032, BASE + 4160], beats=2)
        assert np.array_equal(store, content)
        read_all(memory, [BASE + 4096], port=1)
        content[4100] ^= 0x10
        assert np.array_equal(store, content)
        read_all(memory, [BASE + 4096, BASE + 128])
        content[8192:8256] = content[128:192]
        assert np.array_equal(store, content)
        store[128:192] = content[128:192] = 7
        read_all(memory, [BASE + 128, BASE + 128])
        content[192:256] = content[8192:8256]
        assert np.array_equal(store, content)


def test_changes_outside_of_the_memory_are_refused(capfd):
    for change in ((0, 0, -1, 0, 1, 0), (0, 0, 0, 2**24 - 4, 8, 0)):
        with pytest.raises(InputError, match="accepted by the models"):
            memory_with(change)
        assert "within the memory" in capfd.readouterr().err


def test_a_port_that_is_not_there_refuses_nothing():
    with memory_with() as memory:
        memory.view.refuse(1, write=True, skip=0)
        with pytest.raises(InputError, match="port must be one of memory memory, not 2"):
            memory.view.refuse(2, write=True, skip=0)
